#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace lockbench::test {

/// A strategy's name as GoogleTest allows it in a test's.
inline std::string test_name_of(std::string_view strategy) {
  std::string name(strategy);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace lockbench::test

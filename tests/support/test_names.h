#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace lockbench::test {

/// A strategy's name in the form that GoogleTest allows.
inline std::string test_name_of(std::string_view strategy) {
  std::string name(strategy);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace lockbench::test

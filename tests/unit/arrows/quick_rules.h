#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockbench::test {

/// A file of a quick suite that may sleep or read a real clock.
struct Exception {
  /// From the root.
  std::string_view file;
  std::string_view reason;
};

/// What makes a quick suite depend on the machine's speed: each line in a folder of quick suites
/// under `root` that sleeps, reads a real clock, uses slack() or asserts an upper bound of the
/// carrier's time, unless its file is excepted:
/// "tests/unit/a_test.cc:7: sleep_for". Also an exception that no file needs, exceptions beyond the
/// tenth, and a folder of quick suites that does not exist. Comments and string literals do not
/// count. Sorted.
std::vector<std::string> broken_quick_rules(const std::filesystem::path& root,
                                            std::span<const Exception> exceptions);

}  // namespace lockbench::test

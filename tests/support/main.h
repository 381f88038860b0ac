#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace lockbench::test {

/// As the argument `--folder=` of every test program: only tests of this folder below tests/ are
/// run, or of several such folders, but not of folders inside them.
void select_folder(std::string_view folder);

/// An argument, `--name` or `--name=value`, that a folder's tests give to their program.
struct Argument {
  std::string_view name;  ///< with its dashes
  /// Called before GoogleTest reads its own arguments. `value` is empty if there is none. Returns
  /// an exit code to end the program without any test. Throws std::runtime_error for a wrong value.
  std::function<std::optional<int>(std::string_view value)> take;
};

struct ArgumentRegistration {
  explicit ArgumentRegistration(Argument argument);
};

}  // namespace lockbench::test

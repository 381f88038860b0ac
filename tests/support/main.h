#pragma once

#include <functional>
#include <string_view>

namespace lockbench::test {

/// As the argument `--folder=` of every test program: only tests of this folder below tests/ are
/// run, or of several such folders, but not of folders inside them.
void select_folder(std::string_view folder);

/// An argument `--name=value` that a folder's tests give to their program. `take` is called before
/// GoogleTest reads its own arguments; it throws std::runtime_error for a wrong value.
struct ArgumentRegistration {
  ArgumentRegistration(std::string_view name_with_dashes,
                       std::function<void(std::string_view value)> take);
};

}  // namespace lockbench::test

#pragma once

#include <functional>
#include <string_view>

namespace lockbench::test {

/// Like the argument `--folder=` of every test program: runs only the tests of this folder below
/// tests/, or of several such folders, without the folders inside them.
void select_folder(std::string_view folder);

/// Adds an argument `--name=value` for a folder's tests. `take` is called before GoogleTest reads
/// its own arguments; it throws std::runtime_error for a wrong value.
struct ArgumentRegistration {
  ArgumentRegistration(std::string_view name_with_dashes,
                       std::function<void(std::string_view value)> take);
};

}  // namespace lockbench::test

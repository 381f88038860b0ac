#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::testbed {

/// A server program. Each kind of server defines its own, beside the code that starts it.
struct Program {
  std::string_view name;     ///< as found in PATH
  std::string_view package;  ///< the Debian package that has it
};

/// The program's absolute path, looked for in the folders of `path` (as in $PATH, which is the
/// default). The error reads "redis-server not found: install the package redis-server".
tl::expected<std::filesystem::path, std::string> find_program(const Program& program);
tl::expected<std::filesystem::path, std::string> find_program(const Program& program,
                                                              std::string_view path);

/// A file that is built and installed beside this program. The error names its path.
tl::expected<std::filesystem::path, std::string> find_beside(std::string_view name);

}  // namespace lockbench::testbed

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

/// The servers' needs on this machine: programs, an account, open files.
namespace lockbench::testbed {

/// A server program. Each kind of server defines its own, beside the code that starts it.
struct Program {
  std::string_view name;     ///< as found in PATH
  std::string_view package;  ///< the Debian package that has it
};

/// The program's absolute path, from the folders of $PATH or else from those of `more`, which has
/// the same form. The error reads "redis-server not found: install the package redis-server".
tl::expected<std::filesystem::path, std::string> find_program(const Program& program,
                                                              std::string_view more = {});

/// A file that was built beside this program; an installation has it in libexec. The error names
/// its path.
tl::expected<std::filesystem::path, std::string> find_beside(std::string_view name);

/// The account that runs private servers and owns their files.
struct Account {
  std::string name;  ///< empty: the caller
  uid_t uid = 0;
  gid_t gid = 0;

  /// Gives it this file or folder.
  tl::expected<void, std::string> own(const std::filesystem::path& path) const;
  /// A new file that only it may read.
  tl::expected<void, std::string> write_file(const std::filesystem::path& path,
                                             std::string_view text) const;
};

/// A system account that owns nothing else if we are root, otherwise the caller. The error names
/// the command that makes the account.
tl::expected<Account, std::string> server_account(std::string_view name = "lockbench");

/// Raises this process's soft limit of open files to `wanted`, or to the hard limit if that is
/// less; never lowers it. Servers started later inherit it. Returns the limit now in force; if it
/// is too low, an error with both figures and the remedy (the limit is still raised as far as
/// possible). Call it before threads that open files need it.
tl::expected<std::uint64_t, std::string> raise_open_file_limit(std::uint64_t wanted);

/// The hard limit: how far raise_open_file_limit can go.
std::uint64_t hard_open_file_limit();

/// How many clients a server of one process can have within the hard limit.
std::uint64_t clients_possible();

}  // namespace lockbench::testbed

#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::testbed {

/// Who runs private servers and owns their files.
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

}  // namespace lockbench::testbed

#include "testbed/servers/account.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace lockbench::testbed {

tl::expected<void, std::string> Account::own(const std::filesystem::path& path) const {
  if (name.empty() || lchown(path.c_str(), uid, gid) == 0) return {};
  return tl::unexpected(
      fmt::format("cannot give {} to {}: {}", path.string(), name, std::strerror(errno)));
}

tl::expected<Account, std::string> server_account(std::string_view name) {
  if (geteuid() != 0) return Account{};
  Account account{.name = std::string(name)};
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  getpwnam_r(account.name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr || found->pw_uid == 0) {
    return tl::unexpected(
        fmt::format("private servers do not run as root, and there is no account {0} for them: "
                    "useradd --system --user-group --no-create-home --home-dir /nonexistent "
                    "--shell /usr/sbin/nologin {0}",
                    name));
  }
  account.uid = found->pw_uid;
  account.gid = found->pw_gid;
  return account;
}

}  // namespace lockbench::testbed

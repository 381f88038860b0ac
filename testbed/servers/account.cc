#include "testbed/servers/account.h"

#include <fcntl.h>
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

tl::expected<void, std::string> Account::write_file(const std::filesystem::path& path,
                                                    std::string_view text) const {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    return tl::unexpected(fmt::format("cannot make {}: {}", path.string(), std::strerror(errno)));
  }
  const bool whole = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool closed = close(file) == 0;
  if (!whole || !closed) return tl::unexpected(fmt::format("cannot write {}", path.string()));
  return own(path);
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

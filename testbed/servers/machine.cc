#include "testbed/servers/machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <system_error>

namespace lockbench::testbed {

tl::expected<std::filesystem::path, std::string> find_program(const Program& program,
                                                              std::string_view more) {
  const char* const set = std::getenv("PATH");
  std::string folders = set == nullptr ? "/usr/local/bin:/usr/bin:/bin" : set;
  if (!more.empty()) folders.append(":").append(more);
  std::istringstream path(folders);
  for (std::string folder; std::getline(path, folder, ':');) {
    const auto candidate = std::filesystem::path(folder.empty() ? "." : folder) / program.name;
    std::error_code error;
    if (std::filesystem::is_regular_file(candidate, error) &&
        access(candidate.c_str(), X_OK) == 0) {
      return std::filesystem::absolute(candidate);
    }
  }
  return tl::unexpected(
      fmt::format("{} not found: install the package {}", program.name, program.package));
}

tl::expected<std::filesystem::path, std::string> find_beside(std::string_view name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return tl::unexpected(fmt::format("/proc/self/exe: {}", error.message()));
  const auto beside = self.parent_path() / name;
  for (const auto& place : {beside, self.parent_path() / LOCKBENCH_PARTS / name}) {
    if (std::filesystem::exists(place, error)) return place.lexically_normal();
  }
  return tl::unexpected(
      fmt::format("{} is missing: it belongs beside the program", beside.string()));
}

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

tl::expected<std::uint64_t, std::string> raise_open_file_limit(std::uint64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return tl::unexpected(fmt::format("cannot read the open-file limit: {}", std::strerror(errno)));
  }
  const auto possible = std::min<rlim_t>(wanted, limit.rlim_max);
  if (possible > limit.rlim_cur) {
    limit.rlim_cur = possible;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      return tl::unexpected(fmt::format("cannot raise the open-file limit to {}: {}", possible,
                                        std::strerror(errno)));
    }
  }
  if (limit.rlim_cur < wanted) {
    return tl::unexpected(
        fmt::format("{} open files are needed, the limit is {}: raise it (ulimit -Hn, or "
                    "LimitNOFILE= of the service)",
                    wanted, limit.rlim_cur));
  }
  return limit.rlim_cur;
}

std::uint64_t hard_open_file_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : 0;
}

std::uint64_t clients_possible() {
  constexpr std::uint64_t kFilesBesideClients = 128;  // listeners, logs, data, reserves
  const std::uint64_t files = hard_open_file_limit();
  return files - std::min(files, kFilesBesideClients);
}

}  // namespace lockbench::testbed

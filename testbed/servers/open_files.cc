#include "testbed/servers/open_files.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace lockbench::testbed {
namespace {

constexpr std::uint64_t kFilesBesideClients = 128;  // listeners, logs, data, reserves

}  // namespace

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
  const std::uint64_t files = hard_open_file_limit();
  return files - std::min(files, kFilesBesideClients);
}

tl::expected<std::uint64_t, std::string> clients_allowed(std::string_view server,
                                                         std::uint32_t wanted) {
  constexpr std::uint64_t kGenerous = 50'000;
  if (wanted > clients_possible()) {
    return tl::unexpected(
        fmt::format("{} needs {} open files for {} clients, the limit is {}: raise it (ulimit -Hn)",
                    server, wanted + kFilesBesideClients, wanted, hard_open_file_limit()));
  }
  if (wanted != 0) return wanted;
  return std::clamp<std::uint64_t>(clients_possible(), 1, kGenerous);
}

}  // namespace lockbench::testbed

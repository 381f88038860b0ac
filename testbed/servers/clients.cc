#include "testbed/servers/clients.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "testbed/servers/open_files.h"

namespace lockbench::testbed {

tl::expected<std::uint64_t, std::string> clients_allowed(std::string_view server,
                                                         std::uint32_t wanted) {
  constexpr std::uint64_t kFilesBesideClients = 128;  // listeners, logs, data, reserves
  constexpr std::uint64_t kGenerous = 50'000;
  const std::uint64_t files = hard_open_file_limit();
  if (wanted != 0 && wanted + kFilesBesideClients > files) {
    return tl::unexpected(
        fmt::format("{} needs {} open files for {} clients, the limit is {}: raise it (ulimit -Hn)",
                    server, wanted + kFilesBesideClients, wanted, files));
  }
  if (wanted != 0) return wanted;
  const std::uint64_t possible = files - std::min(files, kFilesBesideClients);
  return std::clamp<std::uint64_t>(possible, 1, kGenerous);
}

std::string unless_root(std::string_view user) {
  return geteuid() == 0 ? std::string(user) : std::string();
}

}  // namespace lockbench::testbed

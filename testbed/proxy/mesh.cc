#include "testbed/proxy/mesh.h"

#include <fmt/format.h>

#include "testbed/failure.h"
#include "testbed/servers/machine.h"
#include "testbed/servers/server.h"
#include "testbed/servers/testbed.h"

namespace lockbench::testbed {

std::string Mesh::name_of(std::size_t member) {
  return fmt::format("member-{}.lockbench", member + 1);
}

std::string Mesh::address_of(std::size_t from, std::size_t to) {
  return from == to ? "127.0.0.1" : fmt::format("127.0.{}.{}", from + 1, to + 1);
}

void Mesh::connect(const std::vector<std::vector<std::uint16_t>>& ports) {
  lines_.clear();
  members_ = ports.size();
  for (std::size_t from = 0; from < members_; ++from) {
    for (std::size_t to = 0; to < members_; ++to) {
      if (from == to) continue;
      for (const std::uint16_t port : ports[to]) {
        const ProxyOptions options{.address = address_of(from, to), .port = port};
        lines_.push_back({from, to, need(start_proxy(proxies_, port, options))});
      }
    }
  }
}

/// In the form that the shim reads.
std::string Mesh::hosts_of(std::size_t member) const {
  std::string hosts;
  for (std::size_t to = 0; to < members_; ++to) {
    hosts += fmt::format("{} {}\n", address_of(member, to), name_of(to));
  }
  for (const Line& line : lines_) {
    if (line.from != member) continue;
    hosts += fmt::format("{} {}:{}\n", address_of(member, line.to), address_of(line.to, line.to),
                         line.proxy->port());
  }
  return hosts;
}

void Mesh::put_under(const Testbed& testbed, std::size_t member, ServerSpec& server) const {
  const auto shim = need(testbed.lend(need(find_beside("lockbench-hosts-shim.so")), server.folder));
  server.argv.insert(server.argv.begin(), {"/usr/bin/env", "LD_PRELOAD=" + shim.string(),
                                           "LOCKBENCH_HOSTS=" + hosts_of(member)});
}

void Mesh::isolate(std::size_t member) {
  for (const Line& line : lines_) {
    if (line.from == member || line.to == member) line.proxy->hold();
  }
}

void Mesh::heal() {
  for (const Line& line : lines_) line.proxy->heal();
}

}  // namespace lockbench::testbed

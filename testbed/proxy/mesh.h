#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "testbed/failure.h"
#include "testbed/proxy/proxy.h"
#include "testbed/servers/machine.h"
#include "testbed/servers/server.h"
#include "testbed/servers/testbed.h"

namespace lockbench::testbed {

/// The network between the members of one cluster: a proxy for each member's port and each other
/// member, so that one member can be cut off from the others but not from its clients. The proxies
/// listen on their own loopback addresses, on the members' port numbers. A member finds the others
/// by name, or at the address that they announce, as ZooKeeper's do. Outlives its members.
class Mesh {
 public:
  explicit Mesh(ProxyPool& proxies) : proxies_(proxies) {}

  /// Begins anew, with lines to these ports of each member. Throws Failure.
  void connect(const std::vector<std::vector<std::uint16_t>>& ports) {
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

  /// The name of this member for the others.
  static std::string name_of(std::size_t member) {
    return fmt::format("member-{}.lockbench", member + 1);
  }
  /// Leads this member to its own proxies whenever it resolves or connects through the C library.
  /// Throws Failure if something is missing for that.
  void put_under(const Testbed& testbed, std::size_t member, ServerSpec& server) const {
    const auto shim =
        need(testbed.lend(need(find_beside("lockbench-hosts-shim.so")), server.folder));
    server.set({"LD_PRELOAD=" + shim.string(), "LOCKBENCH_HOSTS=" + hosts_of(member)});
  }

  /// Holds up everything between this member and the others, until heal() delivers it.
  void isolate(std::size_t member) {
    for (const Line& line : lines_) {
      if (line.from == member || line.to == member) line.proxy->hold();
    }
  }
  void heal() {
    for (const Line& line : lines_) line.proxy->heal();
  }

 private:
  struct Line {
    std::size_t from, to;
    std::unique_ptr<Proxy> proxy;
  };

  static std::string address_of(std::size_t from, std::size_t to) {
    return from == to ? "127.0.0.1" : fmt::format("127.0.{}.{}", from + 1, to + 1);
  }

  /// In the form that the shim reads.
  std::string hosts_of(std::size_t member) const {
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

  ProxyPool& proxies_;
  std::size_t members_ = 0;
  std::vector<Line> lines_;
};

}  // namespace lockbench::testbed

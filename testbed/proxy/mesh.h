#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "testbed/proxy/proxy.h"

namespace lockbench::testbed {

class Testbed;
struct ServerSpec;

/// The network between the members of one cluster: a proxy for each member's port and each other
/// member, so that one member can be cut off from the others but not from its clients. The proxies
/// listen on their own loopback addresses, on the members' port numbers. A member finds the others
/// by name, or at the address that they announce, as ZooKeeper's do. Outlives its members.
class Mesh {
 public:
  explicit Mesh(ProxyPool& proxies) : proxies_(proxies) {}

  /// Begins anew, with lines to these ports of each member. Throws Failure.
  void connect(const std::vector<std::vector<std::uint16_t>>& ports);

  /// The name of this member for the others.
  static std::string name_of(std::size_t member);
  /// Leads this member to its own proxies whenever it resolves or connects through the C library.
  /// Throws Failure if something is missing for that.
  void put_under(const Testbed& testbed, std::size_t member, ServerSpec& server) const;

  /// Holds up everything between this member and the others, until heal() delivers it.
  void isolate(std::size_t member);
  void heal();

 private:
  struct Line {
    std::size_t from, to;
    std::unique_ptr<Proxy> proxy;
  };

  static std::string address_of(std::size_t from, std::size_t to);
  std::string hosts_of(std::size_t member) const;

  ProxyPool& proxies_;
  std::size_t members_ = 0;
  std::vector<Line> lines_;
};

}  // namespace lockbench::testbed

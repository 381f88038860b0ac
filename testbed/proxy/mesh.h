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

/// The network between the members of one cluster: a proxy for each member, port and other member
/// that connects to it, so that one member can be cut off from the others without its clients
/// noticing. The proxies listen on loopback addresses of their own and on the members' port
/// numbers. A member finds the others by name, and also where they say that they listen:
/// ZooKeeper's tell each other. Outlives its members.
class Mesh {
 public:
  explicit Mesh(ProxyPool& proxies) : proxies_(proxies) {}

  /// Begins anew, with lines to these ports of each member. Throws Failure.
  void connect(const std::vector<std::vector<std::uint16_t>>& ports);

  /// How all members call this one.
  static std::string name_of(std::size_t member);
  /// Leads this member to its own proxies wherever it resolves or connects by the C library. Throws
  /// Failure if something is missing for that.
  void put_under(const Testbed& testbed, std::size_t member, ServerSpec& server) const;

  /// Nothing arrives between this member and the others any more, until heal() delivers all of it.
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

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/proxy/proxy.h"

namespace lockbench::testbed {

/// The network between the members of one cluster: a proxy for each member, port and other member
/// that connects to it, so that one member can be cut off from the others without its clients
/// noticing. A member finds the others by name: its own host names lead to its own proxies, which
/// listen on loopback addresses of their own and on the members' port numbers. Outlives its
/// members.
class Mesh {
 public:
  explicit Mesh(ProxyPool& proxies) : proxies_(proxies) {}

  /// Begins anew, with lines to these ports of each member.
  tl::expected<void, std::string> connect(const std::vector<std::vector<std::uint16_t>>& ports);

  /// How all members call this one.
  static std::string name_of(std::size_t member);
  /// Where this member finds them, itself on 127.0.0.1: "ADDRESS NAME", one a line.
  std::string hosts_of(std::size_t member) const;

  /// Nothing arrives between this member and the others any more, until heal() delivers all of it.
  void isolate(std::size_t member);
  void heal();

 private:
  struct Line {
    std::size_t from, to;
    std::unique_ptr<Proxy> proxy;
  };

  static std::string address_of(std::size_t from, std::size_t to);

  ProxyPool& proxies_;
  std::size_t members_ = 0;
  std::vector<Line> lines_;
};

}  // namespace lockbench::testbed

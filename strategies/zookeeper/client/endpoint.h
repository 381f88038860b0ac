#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace lockbench::zookeeper {

/// A ZooKeeper, of one server or several:
/// [zk://[user:password@]]host[:port][,host[:port]...][/chroot] with user and password
/// percent-encoded. They authenticate by the digest scheme, and then only they may touch the nodes
/// that are made.
struct Endpoint {
  std::vector<std::string> servers;  ///< "127.0.0.1:2181"; IPv6 addresses in brackets
  std::string chroot;                ///< "/app": what all paths begin with, unseen; often empty
  std::string user, password;        ///< both empty: nobody in particular

  /// "127.0.0.1:2181,127.0.0.1:2182/app": what people, files and metrics may see.
  std::string display() const;
  /// As the client library takes it, which knows no brackets.
  std::string connect_string() const;
  /// How many connections are tried before all servers have been.
  int addresses() const;
};

/// The error names what is wrong and what is allowed, and does not repeat the text, which may hold
/// a secret.
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

}  // namespace lockbench::zookeeper

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace lockbench::etcd {

struct Address {
  std::string host;
  std::uint16_t port = 2379;

  /// "127.0.0.1:2379", "[::1]:2379"
  std::string display() const;
  /// As gRPC takes it: a name is looked up, a numeric address is not.
  std::string target() const;
};

/// One etcd, of one member or several:
/// [etcd://|http://][user:password@]host[:port][,host[:port]...]
struct Endpoint {
  std::vector<Address> members;  ///< at least one
  std::string user, password;    ///< both empty without authentication

  /// The members alone.
  std::string display() const;
};

/// The error names what is wrong and what is allowed, and does not repeat the text.
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view url);

}  // namespace lockbench::etcd

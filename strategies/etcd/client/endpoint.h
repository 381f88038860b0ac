#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/tls.h"
#include "strategies/url.h"

namespace lockbench::etcd {

/// One etcd cluster: [etcd://|http://|https://][user:password@]host[:port][,host[:port]...], with
/// https:// also a query as in TlsSettings.
struct Endpoint {
  std::vector<HostPort> members;           ///< at least one
  std::string user, password;              ///< both empty without authentication
  std::shared_ptr<const TlsSettings> tls;  ///< null: not encrypted

  /// The members, without credentials.
  std::string display() const;
};

/// The error says what is wrong and what is allowed, and does not repeat the text.
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view url);

/// As gRPC takes an address: a name is looked up, a numeric address is not.
std::string grpc_target(const HostPort& member);

}  // namespace lockbench::etcd

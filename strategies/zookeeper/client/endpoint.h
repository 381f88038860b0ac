#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/tls.h"
#include "strategies/url.h"

namespace lockbench::zookeeper {

/// One ZooKeeper ensemble: [zk://[user:password@]]host[:port][,host[:port]...][/chroot], or zks://
/// for TLS, with a query as in TlsSettings. User and password authenticate by the digest scheme;
/// with them, only that user may touch the nodes that the locks create.
struct Endpoint {
  std::vector<HostPort> servers;
  std::string chroot;                      ///< "/app": the prefix of all paths; often empty
  std::string user, password;              ///< both empty without authentication
  std::shared_ptr<const TlsSettings> tls;  ///< null: not encrypted

  /// "127.0.0.1:2181,127.0.0.1:2182/app": without credentials, for people, files and metrics.
  std::string display() const;
};

/// The error says what is wrong and what is allowed, and does not repeat the text, which may hold a
/// secret.
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

}  // namespace lockbench::zookeeper

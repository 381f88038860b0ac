#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/tls.h"
#include "strategies/url.h"

namespace lockbench::memcached {

/// One memcached server: [memcached://|memcaches://][user:password@]HOST[:PORT], with an IPv6
/// address in brackets. memcaches:// is for TLS, with the settings of tls.h behind a question mark.
struct Endpoint {
  HostPort server;
  std::string user, password;                ///< both empty without authentication
  std::shared_ptr<const TlsSettings> tls{};  ///< null: none

  /// Without credentials, for people, files and metrics.
  std::string display() const { return server.display(); }
};

/// The error says what is wrong and what is allowed, and never repeats the text, which may hold a
/// secret.
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

}  // namespace lockbench::memcached

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/tls.h"
#include "strategies/transport/socket.h"
#include "strategies/url.h"

namespace lockbench::redis {

/// One Redis server. Its URL is redis://[[user]:password@]host[:port][/db],
/// unix://[[user]:password@]/path[?db=N], or, for the current master that these sentinels name,
/// redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/name[/db]. User and password are
/// the server's, and for sentinels that ask for one. With rediss:// or rediss+sentinel:// all of
/// them speak TLS, by the settings behind a question mark (tls.h).
struct Endpoint {
  std::string host;  ///< empty for a unix socket
  int port = 6379;
  std::string path;  ///< of a unix socket
  std::string user, password;
  int database = 0;
  std::vector<HostPort>
      sentinels{};       ///< to be asked for host and port; empty: those above are used
  std::string master{};  ///< the name by which the sentinels know it
  std::shared_ptr<const TlsSettings> tls{};  ///< null: none

  /// "127.0.0.1:6379", "unix:/run/redis.sock" or "10.0.0.1:26379,10.0.0.2:26379/name": without
  /// credentials, for people, files and metrics.
  std::string display() const;
  /// For an endpoint without sentinels.
  SocketAddress address() const { return {.host = host, .port = port, .path = path}; }
};

/// The error says what is wrong and what is allowed, and never repeats the URL, which may hold a
/// secret.
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view url);

}  // namespace lockbench::redis

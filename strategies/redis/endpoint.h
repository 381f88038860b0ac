#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::redis {

/// One Redis server, as named by redis://[[user]:password@]host[:port][/db] or
/// unix://[[user]:password@]/path[?db=N]. Percent-encoding is understood in user and password.
struct Endpoint {
  std::string host;  ///< empty for a unix socket
  int port = 6379;
  std::string path;  ///< unix socket
  std::string user, password;
  int database = 0;

  /// "127.0.0.1:6379" or "unix:/run/redis.sock": what people, files and metrics may see.
  std::string display() const;
};

/// The error names what is wrong and what is allowed, and never repeats the URL, which may hold a
/// secret.
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view url);

}  // namespace lockbench::redis

#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace lockbench::redis {

/// One Redis server, as named by redis://[[user]:password@]host[:port][/db],
/// unix://[[user]:password@]/path[?db=N], or, for whichever server is the master just now,
/// redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/name[/db]: its sentinels.
/// Percent-encoding is understood in user and password, which are the server's.
struct Endpoint {
  struct Sentinel {
    std::string host;
    int port = 26379;
  };

  std::string host;  ///< empty for a unix socket
  int port = 6379;
  std::string path;  ///< unix socket
  std::string user, password;
  int database = 0;
  std::vector<Sentinel> sentinels{};  ///< who know the host and port; empty: those above are it
  std::string master{};               ///< its name among them

  /// "127.0.0.1:6379", "unix:/run/redis.sock" or "10.0.0.1:26379,10.0.0.2:26379/name": what people,
  /// files and metrics may see.
  std::string display() const;
};

/// The error names what is wrong and what is allowed, and never repeats the URL, which may hold a
/// secret.
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view url);

}  // namespace lockbench::redis

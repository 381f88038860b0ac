#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/process/clock_shim.h"
#include "testbed/servers/machine.h"
#include "testbed/servers/ports.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

inline constexpr Program kRedisServer{"redis-server", "redis-server"};

struct RedisOptions {
  bool durable = true;            ///< append-only file, fsync every second; false: nothing is saved
  std::uint32_t max_clients = 0;  ///< 0: as many as the open-file limit allows, at most 50,000
  bool unix_socket = false;       ///< listen on a unix socket too
  /// Further users, as in redis.conf after "user ": "ann on >secret ~* &* +@all". Without one
  /// called default nobody gets in who does not log in.
  std::vector<std::string> users;
  std::vector<std::string> config;   ///< further lines of redis.conf, for instance "replicaof ..."
  const TlsFiles* tls = nullptr;     ///< it speaks nothing but TLS; null: no TLS
  const ClockShim* clock = nullptr;  ///< the clock that it uses; null: the machine's
  PortChooser choose_port = free_loopback_port;
};

/// A redis-server on a free loopback port, ready to be used. Passwords are in a configuration file
/// that only the servers' account can read.
tl::expected<std::unique_ptr<Server>, std::string> start_redis(Testbed& testbed,
                                                               const RedisOptions& options = {});

/// The user and secret of the testbed for a Redis or a Sentinel, as lines of its configuration.
std::string redis_login_config(const Testbed& testbed);

/// The port of a Redis or a Sentinel, likewise; with TLS also to other servers.
std::string redis_port_config(std::uint16_t port, const TlsFiles* tls);

/// How long a Redis server that runs takes at most to answer.
inline constexpr std::chrono::seconds kRedisAnswersWithin{1};

/// The answers to inline commands of the user who may do everything, with `whole` as in ask_until.
tl::expected<std::string, std::string> ask_redis(
    const Server& server, std::string_view commands,
    const std::function<bool(std::string_view)>& whole,
    std::chrono::milliseconds within = kRedisAnswersWithin);
/// The first line of the answer.
tl::expected<std::string, std::string> ask_redis_line(const Server& server,
                                                      std::string_view command);

}  // namespace lockbench::testbed

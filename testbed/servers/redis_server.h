#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/process/clock_shim.h"
#include "testbed/servers/ports.h"
#include "testbed/servers/programs.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

inline constexpr Program kRedisServer{"redis-server", "redis-server"};

struct RedisOptions {
  bool durable = true;            ///< append-only file, fsync every second; false: nothing is saved
  std::uint32_t max_clients = 0;  ///< 0: as many as the open-file limit allows, at most 50,000
  bool unix_socket = false;       ///< listen on a unix socket too
  std::string password;           ///< of the default user; empty: none
  std::vector<std::string> users;  ///< as in redis.conf after "user ": "ann on >secret ~* &* +@all"
  std::vector<std::string> config;   ///< further lines of redis.conf, for instance "replicaof ..."
  const ClockShim* clock = nullptr;  ///< the clock that it uses; null: the machine's
  PortChooser choose_port = free_loopback_port;
};

/// A redis-server on a free loopback port, ready to be used. Passwords are in a configuration file
/// in the testbed's private folder, so that neither the process list nor other users show them.
tl::expected<std::unique_ptr<Server>, std::string> start_redis(Testbed& testbed,
                                                               const RedisOptions& options = {});

}  // namespace lockbench::testbed

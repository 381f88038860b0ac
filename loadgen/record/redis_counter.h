#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "loadgen/record/counter.h"
#include "strategies/redis/client/connection.h"

namespace lockbench::loadgen {

/// What a key's counter is called in the store. Called on any client's thread.
using CounterKeyName = std::function<std::string(int key)>;

/// Everything referred to outlives the counter; `env` belongs to the thread that makes it.
struct RedisCounterOptions {
  redis::ConnectionFactory& connections;
  redis::Endpoint endpoint;
  Duration command_timeout = std::chrono::seconds(1);
  Env& env;
  int keys = 1;
  CounterKeyName key_name;
  /// Turns away fencing numbers lower than one that was seen, when reading and when writing.
  /// Clients without numbers are not checked.
  bool checks_fencing = false;

  /// Where the highest number seen stands.
  std::string fence_name(int key) const { return key_name(key) + ":fence"; }
};

/// In a Redis server, so that clients may be separate processes. Connects, and notes where the
/// counters stand; the error names the endpoint. What it counts as written are the writes of its
/// own sessions.
tl::expected<std::unique_ptr<Counter>, std::string> make_redis_counter(RedisCounterOptions options);

}  // namespace lockbench::loadgen

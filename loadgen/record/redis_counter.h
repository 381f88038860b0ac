#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "loadgen/record/counter.h"
#include "strategies/descriptor.h"
#include "strategies/redis/client/connection.h"

namespace lockbench::loadgen {

/// References must outlive the counter; `env` belongs to the thread that makes it.
struct RedisCounterOptions {
  redis::ConnectionFactory& connections;
  redis::Endpoint endpoint;
  Duration command_timeout = std::chrono::seconds(1);
  Env& env;
  int keys = 1;
  /// The name of a key's counter in the store. Called on any client's thread.
  std::function<std::string(int key)> key_name;
  /// Rejects reads and writes whose fencing number is below the highest seen. Clients without
  /// numbers are not checked.
  bool checks_fencing = false;

  /// The key that holds the highest number seen.
  std::string fence_name(int key) const { return key_name(key) + ":fence"; }
};

/// In a Redis server, so that clients may be separate processes. Its keys have no TTL: a resource
/// that forgot the highest number seen would let older ones through. Connects; the error names the
/// endpoint. Counts only the writes of its own sessions; a key's initial value is the reading
/// behind the first of these.
tl::expected<std::unique_ptr<Counter>, std::string> make_redis_counter(RedisCounterOptions options);

}  // namespace lockbench::loadgen

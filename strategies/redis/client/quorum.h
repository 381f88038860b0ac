#pragma once

#include <chrono>

#include "strategies/duration.h"

namespace lockbench::redis {

// The arithmetic of redis.io, "Distributed Locks with Redis" (articles 001 and 003).

/// How many of `nodes` are a majority.
constexpr int majority_of(int nodes) { return nodes / 2 + 1; }

/// What clocks may differ by during a TTL.
constexpr Duration drift_of(Duration ttl) { return ttl / 100 + std::chrono::milliseconds(2); }

/// What is left of a lock's validity once the votes are in. Not positive: it must not be handed
/// out.
constexpr Duration validity_of(Duration ttl, Duration elapsed) {
  return ttl - elapsed - drift_of(ttl);
}

/// How long one node is waited for: little against the TTL, so that one that is down costs little
/// of the validity.
constexpr Duration node_timeout_of(Duration ttl) {
  constexpr Duration kLongest = std::chrono::milliseconds(50);
  return ttl / 20 < kLongest ? ttl / 20 : kLongest;
}

}  // namespace lockbench::redis

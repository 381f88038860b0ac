#pragma once

#include "strategies/descriptor.h"

namespace lockbench::redis {

// The arithmetic of redis.io, "Distributed Locks with Redis".

constexpr int majority_of(int nodes) { return nodes / 2 + 1; }

/// How far the nodes' clocks may drift apart during a TTL.
constexpr Duration drift_of(Duration ttl) { return ttl / 100 + std::chrono::milliseconds(2); }

/// The remaining validity once the votes are in. The lock must not be granted unless it is
/// positive.
constexpr Duration validity_of(Duration ttl, Duration elapsed) {
  return ttl - elapsed - drift_of(ttl);
}

/// How long to wait for one node: a small part of the TTL, so that a node that is down costs little
/// validity.
constexpr Duration node_timeout_of(Duration ttl) {
  constexpr Duration kLongest = std::chrono::milliseconds(50);
  return ttl / 20 < kLongest ? ttl / 20 : kLongest;
}

/// Of both orders.
Traits redlock_traits();

}  // namespace lockbench::redis

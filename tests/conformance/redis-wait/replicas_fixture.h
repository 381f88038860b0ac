#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/redis-wait/replicated_store.h"

namespace lockbench::test {

/// Enough for replicas that answer.
inline constexpr milliseconds kBound{1000};

inline StrategyOptions within(Duration bound, std::optional<int> replicas = std::nullopt) {
  StrategyOptions options;
  options.wait_timeout = bound;
  options.wait_replicas = replicas;
  return options;
}

/// One group for all; every replica follows when a test begins.
class Replicas : public testing::Test {
 protected:
  Replicas() : store_(breakable_store()) {
    for (std::size_t i = 0; i < kReplicas; ++i) must(store_.group().replica(i).thaw());
    store_.settle();
    store_.clear();
  }
  ~Replicas() override {
    for (std::size_t i = 0; i < kReplicas; ++i) (void)store_.group().replica(i).thaw();
  }

  static ReplicatedStore& breakable_store() {
    static ReplicatedStore tested;
    return tested;
  }

  bool is_on(testbed::Server& server, const std::string& key) {
    return RedisProbe(server.port()).exists(key);
  }
  testbed::Server& primary() { return store_.group().primary(); }
  testbed::Server& replica(std::size_t number) { return store_.group().replica(number); }

  ReplicatedStore& store_;
};

}  // namespace lockbench::test

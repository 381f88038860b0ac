#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/registry.h"
#include "strategies/renewal.h"
#include "tests/support/fake_redis.h"

namespace lockbench::redis {

using namespace std::chrono_literals;

/// One client of one fake server. All share the simulated time, on one thread.
struct RedisClient {
  RedisClient(SimClock& clock, std::string_view strategy, const Endpoints& endpoints,
              Services& services, int number, const StrategyOptions& how)
      : options(how),
        env(clock, static_cast<std::uint64_t>(number)),
        lock(make_strategy(*find_strategy(strategy), {.endpoints = endpoints,
                                                      .options = options,
                                                      .env = env,
                                                      .services = services,
                                                      .client = number})) {}

  /// One attempt, unless there is a timeout.
  AcquireResult acquire(Duration ttl = 10s, Duration timeout = 0s) {
    return lock->acquire({.key = "k", .ttl = ttl, .deadline = env.now() + timeout, .stop = {}});
  }

  Lease must_acquire(Duration ttl = 10s) {
    AcquireResult result = acquire(ttl);
    EXPECT_EQ(result.outcome, AcquireOutcome::acquired) << result.reason;
    if (!result.lease) throw std::runtime_error("not acquired");
    return *std::move(result.lease);
  }

  const StrategyOptions options;
  SimEnv env;
  std::unique_ptr<LockStrategy> lock;
};

/// Clients of fake servers, whose renewals the test drives.
template <class Servers>
class FakeServersTest : public testing::Test {
 protected:
  using Commands = std::vector<std::string>;
  using Failure = FakeRedis::Failure;

  FakeServersTest() {
    services_.provide<ConnectionFactory>(servers_);
    services_.provide<RenewalScheduler>(scheduler_);
  }

  RedisClient& client(std::string_view strategy) {
    const auto number = static_cast<int>(clients_.size());
    return clients_.emplace_back(clock_, strategy, endpoints_, services_, number, options_);
  }

  SimClock clock_;
  Endpoints endpoints_;
  StrategyOptions options_;  ///< for clients that are made from now on
  const std::shared_ptr<Servers> servers_ = std::make_shared<Servers>(clock_);
  StrategyObserver ignores_renewals_;
  const std::shared_ptr<RenewalScheduler> scheduler_ = std::make_shared<RenewalScheduler>(
      std::make_unique<SimEnv>(clock_), ignores_renewals_, RenewalScheduler::Drive::by_hand);
  Services services_;
  std::deque<RedisClient> clients_;
};

class RedisLockTest : public FakeServersTest<FakeRedis> {
 protected:
  RedisLockTest() { endpoints_["redis"] = {"redis://:hunter2@fake:1"}; }

  /// Runs the scheduler for this long.
  void renew_for(Duration time) {
    const TimePoint end = clock_.now() + time;
    for (TimePoint next = scheduler_->run_due(); next <= end; next = scheduler_->run_due()) {
      clock_.advance_to(next);
    }
    clock_.advance_to(end);
  }

  /// The commands since the last call.
  Commands commands() { return redis_.take_commands(); }

  /// Calls a function once, before the next command with this prefix takes effect.
  void before(std::string begins, std::function<void()> action) {
    redis_.on_arrival([begins = std::move(begins), action = std::move(action),
                       done = false](const std::string& command) mutable {
      if (done || !command.starts_with(begins)) return;
      done = true;
      action();
    });
  }

  std::string wall_milliseconds(Duration ahead) const {
    return std::to_string(ceil_milliseconds((clock_.wall_now() + ahead).time_since_epoch()));
  }

  FakeRedis& redis_ = *servers_;
};

}  // namespace lockbench::redis

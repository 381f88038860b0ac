#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "strategies/registry.h"
#include "tests/support/sim_env.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;

/// Calls a function instead of the first wait, when the client is in the queue.
class HookedEnv : public SimEnv {
 public:
  using SimEnv::SimEnv;

  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    if (const auto hook = std::exchange(instead_of_wait, nullptr)) return hook();
    return SimEnv::wait(event, deadline, stop);
  }

  std::function<WaitResult()> instead_of_wait;
};

TEST(LocalMutex, AGrantDuringLeavingIsKept) {
  SimClock clock;
  HookedEnv env(clock);
  Services services;
  const Endpoints endpoints;
  const StrategyOptions options;
  const auto client = [&] {
    return make_strategy(
        *find_strategy("local-mutex"),
        {.endpoints = endpoints, .options = options, .env = env, .services = services});
  };
  const auto acquire = [&](LockStrategy& lock, Duration timeout) {
    return lock.acquire({.key = "k", .deadline = env.now() + timeout, .stop = {}});
  };
  for (const WaitResult ended : {WaitResult::timed_out, WaitResult::stopped}) {
    const auto a = client(), b = client();
    const Lease lease = acquire(*a, 0ms).lease.value();
    env.instead_of_wait = [&, ended] {
      a->release(lease);
      return ended;
    };
    const AcquireResult result = acquire(*b, 1s);
    ASSERT_EQ(result.outcome, AcquireOutcome::acquired);
    EXPECT_EQ(b->release(*result.lease).outcome, ReleaseOutcome::released);

    // The grant's signal must not end the next wait.
    const Lease again = acquire(*a, 0ms).lease.value();
    EXPECT_EQ(acquire(*b, 10ms).outcome, AcquireOutcome::timed_out);
    a->release(again);
  }
}

}  // namespace
}  // namespace lockbench

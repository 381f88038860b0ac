#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>

#include "strategies/registry.h"
#include "tests/support/sim_env.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;

/// Calls a function before each wait, when the client is in the queue.
class HookedEnv : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;

  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    if (before_wait) {
      const auto hook = std::exchange(before_wait, nullptr);
      if (const auto instead = hook()) return *instead;
    }
    return ForwardingEnv::wait(event, deadline, stop);
  }

  /// Called once. If it returns a result, that replaces the wait.
  std::function<std::optional<WaitResult>()> before_wait;
};

class LocalMutexTest : public testing::Test {
 protected:
  struct Client {
    const Endpoints endpoints{};
    const StrategyOptions options{};
    std::unique_ptr<Env> world;
    HookedEnv env;
    std::unique_ptr<LockStrategy> lock;

    Client(std::unique_ptr<Env> in, Services& services)
        : world(std::move(in)),
          env(*world),
          lock(make_strategy(
              *find_strategy("local-mutex"),
              {.endpoints = endpoints, .options = options, .env = env, .services = services})) {}
    AcquireResult acquire(Duration timeout) {
      return lock->acquire({.key = "k", .deadline = env.now() + timeout, .stop = {}});
    }
    Lease must_acquire() {
      AcquireResult result = acquire(0ms);
      EXPECT_EQ(result.outcome, AcquireOutcome::acquired);
      return result.lease.value_or(Lease{});
    }
  };

  Client& simulated() { return clients_.emplace_back(std::make_unique<SimEnv>(clock_), services_); }

  SimClock clock_;
  Services services_;
  std::deque<Client> clients_;
};

TEST_F(LocalMutexTest, AGrantDuringLeavingIsKept) {
  for (const WaitResult ended : {WaitResult::timed_out, WaitResult::stopped}) {
    Client &a = simulated(), &b = simulated();
    const Lease lease = a.must_acquire();
    b.env.before_wait = [&, ended] {
      a.lock->release(lease);
      return std::optional(ended);
    };
    const AcquireResult result = b.acquire(1s);
    ASSERT_EQ(result.outcome, AcquireOutcome::acquired);
    EXPECT_EQ(b.lock->release(*result.lease).outcome, ReleaseOutcome::released);

    // The grant's signal must not end the next wait.
    const Lease again = a.must_acquire();
    EXPECT_EQ(b.acquire(10ms).outcome, AcquireOutcome::timed_out);
    a.lock->release(again);
  }
}

TEST_F(LocalMutexTest, DoesNotExcludeAnotherProcess) {
  Services other_process;
  Client& a = simulated();
  Client stranger(std::make_unique<SimEnv>(clock_), other_process);
  a.must_acquire();
  stranger.must_acquire();
}

}  // namespace
}  // namespace lockbench

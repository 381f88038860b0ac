#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

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
    AcquireResult acquire(Duration timeout, std::string_view key = "k",
                          const std::stop_token& stop = {}) {
      return lock->acquire({.key = key, .deadline = env.now() + timeout, .stop = stop});
    }
    Lease must_acquire(std::string_view key = "k") {
      AcquireResult result = acquire(0ms, key);
      EXPECT_EQ(result.outcome, AcquireOutcome::acquired);
      return result.lease.value_or(Lease{});
    }
  };

  Client& simulated() { return clients_.emplace_back(std::make_unique<SimEnv>(clock_), services_); }
  Client& real() { return clients_.emplace_back(make_system_env(clients_.size()), services_); }

  SimClock clock_;
  Services services_;
  std::deque<Client> clients_;
};

TEST_F(LocalMutexTest, OneAtATimePerKey) {
  Client &a = simulated(), &b = simulated();
  const Lease lease = a.must_acquire();
  EXPECT_EQ(b.acquire(0ms).outcome, AcquireOutcome::refused);
  EXPECT_EQ(a.acquire(0ms).outcome, AcquireOutcome::refused);  // not reentrant
  b.must_acquire("another");
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  b.must_acquire();
}

TEST_F(LocalMutexTest, ALeaseDoesNotExpire) {
  Client& a = simulated();
  const Lease lease = a.must_acquire();
  EXPECT_EQ(lease.state->valid_until(), TimePoint::max());
  EXPECT_EQ(a.lock->renew(lease, 1s).outcome, RenewOutcome::unsupported);
}

TEST_F(LocalMutexTest, OnlyItsOwnGrantCanBeReleased) {
  Client &a = simulated(), &b = simulated();
  const Lease old = a.must_acquire();
  EXPECT_EQ(a.lock->release(old).outcome, ReleaseOutcome::released);
  EXPECT_EQ(a.lock->release(old).outcome, ReleaseOutcome::not_owner);
  const Lease lease = b.must_acquire();
  EXPECT_EQ(a.lock->release(old).outcome, ReleaseOutcome::not_owner);
  EXPECT_EQ(b.lock->release(lease).outcome, ReleaseOutcome::released);
}

TEST_F(LocalMutexTest, AWaiterGivesUpAtItsDeadlineAndLeavesTheQueue) {
  Client &a = simulated(), &b = simulated(), &c = simulated();
  const Lease lease = a.must_acquire();
  const TimePoint start = clock_.now();
  EXPECT_EQ(b.acquire(250ms).outcome, AcquireOutcome::timed_out);
  EXPECT_EQ(clock_.now() - start, 250ms);
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  c.must_acquire();  // not granted to the one that left
}

TEST_F(LocalMutexTest, AStoppedWaiterLeavesTheQueue) {
  Client &a = simulated(), &b = simulated(), &c = simulated();
  const Lease lease = a.must_acquire();
  std::stop_source stop;
  clock_.at(clock_.now() + 40ms, [&] { stop.request_stop(); });
  EXPECT_EQ(b.acquire(1s, "k", stop.get_token()).outcome, AcquireOutcome::abandoned);
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  c.must_acquire();
}

TEST_F(LocalMutexTest, AReleaseHandsOverToTheWaiter) {
  Client &a = simulated(), &b = simulated(), &c = simulated();
  const Lease lease = a.must_acquire();
  const TimePoint release_at = clock_.now() + 70ms;
  clock_.at(release_at, [&] {
    a.lock->release(lease);
    EXPECT_EQ(c.acquire(0ms).outcome, AcquireOutcome::refused) << "the waiter was overtaken";
  });
  const AcquireResult handed_over = b.acquire(1s);
  EXPECT_EQ(handed_over.outcome, AcquireOutcome::acquired);
  EXPECT_EQ(clock_.now(), release_at);
  EXPECT_EQ(b.lock->release(*handed_over.lease).outcome, ReleaseOutcome::released);
}

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

TEST_F(LocalMutexTest, FirstComeFirstServed) {
  Client& holder = real();
  const Lease lease = holder.must_acquire();
  constexpr int kWaiters = 5;
  std::vector<int> order;  // written under the lock itself
  std::deque<std::latch> queued;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kWaiters; ++i) {
    Client& client = real();
    client.env.before_wait = [&latch = queued.emplace_back(1)]() -> std::optional<WaitResult> {
      latch.count_down();
      return std::nullopt;
    };
    threads.emplace_back([&client, &order, i] {
      const AcquireResult result = client.acquire(20s);
      ASSERT_EQ(result.outcome, AcquireOutcome::acquired);
      order.push_back(i);
      EXPECT_EQ(client.lock->release(*result.lease).outcome, ReleaseOutcome::released);
    });
    queued.back().wait();
  }
  EXPECT_EQ(holder.lock->release(lease).outcome, ReleaseOutcome::released);
  threads.clear();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_F(LocalMutexTest, ExcludesThreads) {
  constexpr int kThreads = 4, kRounds = 500;
  int counter = 0;
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&counter, &client = real()] {
      for (int round = 0; round < kRounds; ++round) {
        const AcquireResult result = client.acquire(20s);
        ASSERT_EQ(result.outcome, AcquireOutcome::acquired);
        ++counter;
        client.lock->release(*result.lease);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(counter, kThreads * kRounds);
}

TEST(None, GrantsEveryRequest) {
  const Endpoints endpoints;
  const StrategyOptions options;
  SimClock clock;
  SimEnv env(clock);
  Services services;
  const auto lock =
      make_strategy(*find_strategy("none"),
                    {.endpoints = endpoints, .options = options, .env = env, .services = services});
  const AcquireResult first = lock->acquire({.key = "k"}), second = lock->acquire({.key = "k"});
  EXPECT_EQ(first.outcome, AcquireOutcome::acquired);
  EXPECT_EQ(second.outcome, AcquireOutcome::acquired);
  EXPECT_EQ(lock->release(*first.lease).outcome, ReleaseOutcome::released);
  EXPECT_EQ(lock->release(*second.lease).outcome, ReleaseOutcome::released);
}

}  // namespace
}  // namespace lockbench

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <utility>

#include "results/stats/load_figures.h"
#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

TEST_F(LiveRunTest, LateSectionsAreMeasuredFromTheirIntendedStart) {
  // Sections are due every millisecond, and each occupies the only client for 200 ms.
  plan_.workload.clients = 1;
  open_loop(1000);
  plan_.workload.acquire_timeout = 500ms;
  hold(200ms);
  end_after(5);
  bool deadline_had_passed = false;
  const results::Run run =
      run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
        if (request.deadline <= context.env.now()) deadline_had_passed = true;
        return grant(request);
      }});
  EXPECT_NEAR(run.schedule_lag.max, 4 * 0.199, 0.01);
  EXPECT_EQ(run.acquire.max, run.schedule_lag.max);
  EXPECT_EQ(run.acquire_service.max, 0);
  EXPECT_FALSE(deadline_had_passed) << "the deadline must run from the actual start";
}

TEST_F(LiveRunTest, SectionsThatAreNotMadeUpForAreInTheLongestWait) {
  // The only client holds the lock for longer than a section may be late.
  plan_.workload.clients = 1;
  open_loop(1000);
  plan_.workload.longest_lag = 50ms;
  plan_.workload.duration = 700ms;
  hold(300ms);
  const results::Run run = run_one(leaky_lock);
  // Sections begin at 0, 300 and 600 ms, the latter two 50 ms late; those in between and afterwards
  // are lost.
  EXPECT_NEAR(static_cast<double>(run.outcomes.abandoned), 249 + 299 + 149, 3);
  EXPECT_NEAR(run.fairness.longest_wait_seconds, 0.349, 0.002);
  EXPECT_TRUE(run.fairness.longest_wait_at_least);
}

TEST_F(LiveRunTest, TimeOutsAreCountedAndAreInTheLongestWait) {
  plan_.workload.acquire_timeout = 5ms;
  plan_.workload.duration = 500ms;
  const results::Run run = run_one({.acquire = wait_in_vain});
  EXPECT_EQ(run.outcomes.timed_out, 4U * 100) << "those that began in time";
  EXPECT_EQ(run.sections, 0U);
  EXPECT_EQ(run.acquire.count, 0U);
  EXPECT_DOUBLE_EQ(run.fairness.longest_wait_seconds, 0.005);
}

TEST_F(LiveRunTest, WithoutTimeToWaitTheyAreRefused) {
  plan_.workload.acquire_timeout = 0ms;
  plan_.workload.think = DurationDistribution::constant(100us);
  hold(2ms);
  end_after(300);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_GT(run.outcomes.refused, 0U);
  EXPECT_EQ(run.outcomes.acquired, 300U);
  EXPECT_EQ(run.sections, 300U);
  EXPECT_EQ(run.audit.verdict, results::Verdict::exclusive);
}

/// A store that is slow to end a wait.
AcquireResult wait_in_vain_and_end_late(const Context& context, const AcquireRequest& request) {
  AcquireResult result = wait_in_vain(context, request);
  context.env.wait(nullptr, context.env.now() + 300ms, {});
  return result;
}

TEST_F(LiveRunTest, WhoStillWaitsAtTheEndIsAbandoned) {
  plan_.workload.duration = 60s;
  plan_.workload.acquire_timeout = 60s;
  const results::Run run =
      run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
        if (context.client == 3) {
          context.env.wait(nullptr, context.env.now() + 7s, {});
          stop_.request_stop();
        }
        return wait_in_vain_and_end_late(context, request);
      }});
  EXPECT_EQ(run.outcomes.abandoned, 4U);
  EXPECT_EQ(run.outcomes.timed_out, 0U);
  EXPECT_DOUBLE_EQ(run.fairness.longest_wait_seconds, 7) << "not after the stop";
  EXPECT_EQ(run.series.back().waiters, 4U);
}

TEST_F(LiveRunTest, WhoWaitsThroughTheWholeRunHasWaitedTheLongest) {
  plan_.workload.warmup = 400ms;
  plan_.workload.duration = 400ms;
  plan_.workload.acquire_timeout = 2s;
  const results::Run run = run_one({.acquire = wait_in_vain_and_end_late});
  EXPECT_EQ(run.outcomes.timed_out, 4U);
  EXPECT_DOUBLE_EQ(run.fairness.longest_wait_seconds, 2) << "not after its deadline";
  EXPECT_DOUBLE_EQ(run.acquire.max, 2);
  EXPECT_DOUBLE_EQ(run.duration_seconds, 0.4);
}

TEST_F(LiveRunTest, WhoWaitedSinceTheWarmUpIsInTheLongestWaitAlone) {
  plan_.workload.clients = 1;
  plan_.workload.warmup = 400ms;
  plan_.workload.duration = 1s;
  hold(10ms);
  bool first = true;
  const results::Run run =
      run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
        if (std::exchange(first, false)) {
          context.env.wait(nullptr, context.env.now() + 900ms, request.stop);
        }
        return grant(request);
      }});
  EXPECT_NEAR(static_cast<double>(run.sections), 50, 1);
  EXPECT_EQ(run.outcomes.acquired, run.sections) << "granted in the measured part";
  EXPECT_EQ(run.acquire.count + 1, run.outcomes.acquired) << "begun in the warm-up";
  EXPECT_LT(run.acquire.max, 0.1);
  EXPECT_DOUBLE_EQ(run.fairness.longest_wait_seconds, 0.9);
}

/// A lock that grants in the order of the requests, with the end of its first client.
struct FairLock {
  class Client : public ScriptedLock {
   public:
    Client(const Context& context, FairLock& lock)
        : ScriptedLock(context, lock.behaviour), lock_(lock) {}
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client() override {
      const TimePoint now = Carrier::current().now();
      lock_.first_end = std::min(lock_.first_end.value_or(now), now);
    }

   private:
    FairLock& lock_;
  };

  AcquireResult acquire(const Context& context, const AcquireRequest& request) {
    if (!begun) begun = context.env.now();
    queue.push_back(context.client);
    while (queue.front() != context.client) {
      const TimePoint soon = context.env.now() + 100us;
      if (context.env.wait(nullptr, soon, request.stop) != WaitResult::stopped) continue;
      std::erase(queue, context.client);
      return outcome(AcquireOutcome::abandoned);
    }
    return grant(request);
  }
  ReleaseResult release() {
    queue.pop_front();
    return {ReleaseOutcome::released, {}};
  }

  std::deque<int> queue{};
  std::optional<TimePoint> begun{}, first_end{};
  const Behaviour behaviour{
      .acquire = [this](const Context& context,
                        const AcquireRequest& request) { return acquire(context, request); },
      .release = [this](const Lease&) { return release(); }};
  const Descriptor descriptor{
      .name = "fair", .backend = "local", .make = [this](const Context& context) {
        return std::make_unique<Client>(context, *this);
      }};
};

TEST_F(LiveRunTest, TheLastWaitsOfTheMeasuredPartAreThoseOfTheSameLoad) {
  plan_.workload.clients = 32;
  plan_.workload.warmup = 1s;
  plan_.workload.duration = 3s;
  hold(10ms);
  for (const bool open : {false, true}) {
    if (open) open_loop(90);
    FairLock lock;
    const results::Run run = run_one(lock.descriptor);
    EXPECT_EQ(run.outcomes.abandoned, 0U);
    EXPECT_EQ(run.acquire.censored.count, 0U) << "each wait of the measured part has ended";
    EXPECT_GE(lock.first_end.value() - lock.begun.value(), 4s) << "nobody leaves before";
    const double wait = open ? 0 : 0.31;  // for 31 others, or for none
    EXPECT_NEAR(run.acquire.max, wait, 0.005);
    EXPECT_NEAR(run.acquire.p50, wait, 0.005);
    ASSERT_EQ(run.series.size(), 4U);
    for (std::size_t second = 2; second < 4; ++second) {
      EXPECT_NEAR(run.series[second].acquire_p99, run.series[1].acquire_p99, 0.002);
      EXPECT_NEAR(static_cast<double>(run.series[second].sections),
                  static_cast<double>(run.series[1].sections), 1);
    }
    EXPECT_EQ(run.outcomes.acquired, run.sections);
    EXPECT_LE(run.sections + run.series[0].sections, sections_of(run.series));
    EXPECT_GE(run.sections + run.series[0].sections + 1, sections_of(run.series));
    EXPECT_GE(run.audit.increments, sections_of(run.series)) << "which includes the run-out";
    if (!open) {
      EXPECT_GE(run.audit.increments, sections_of(run.series) + 30);
    }
  }
}

TEST_F(LiveRunTest, WhatAnOverloadedLockOnlyQueuedIsNotServedInTime) {
  // 200 sections are due in a second, twice as many as there is time for; all are granted in the
  // end.
  plan_.workload.clients = 4;
  open_loop(200);
  plan_.workload.duration = 1s;
  hold(10ms);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_NEAR(static_cast<double>(run.sections), 100, 1);
  EXPECT_EQ(run.outcomes.acquired, run.sections);
  EXPECT_EQ(run.acquire.count, 200U) << "each with its whole length";
  EXPECT_EQ(run.acquire.censored.count, 0U);
  EXPECT_NEAR(run.acquire.max, 0.995, 0.05) << "the last one comes at 0.995 s, its turn at 1.99 s";
  EXPECT_NEAR(results::served_share({&run}).value(), 100 / 196.0, 0.01);
}

/// Its client wakes late.
class LateEnv : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    const bool ends = deadline < TimePoint::max();
    return ForwardingEnv::wait(event, ends ? deadline + 5ms : deadline, stop);
  }
};

TEST_F(LiveRunTest, ASectionThatIsDueBeforeAStopButWhoseClientWakesAfterItIsAbandoned) {
  // Sections are due every 10 ms. The stop comes at 1.002 s, when the client of the one that was
  // due at 1 s still sleeps.
  plan_.workload.clients = 2;
  open_loop(100);
  plan_.workload.duration = 60s;
  plan_.make_env = [](std::uint64_t seed) {
    return std::make_unique<LateEnv>(make_system_env(seed));
  };
  std::optional<TimePoint> begun;
  const results::Run run =
      run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
        if (!begun) begun = context.env.now();
        if (context.env.now() >= *begun + 990ms) {
          Carrier::current().wait(nullptr, *begun + 1002ms, {});
          stop_.request_stop();
        }
        return grant(request);
      }});
  EXPECT_EQ(run.outcomes.acquired, 100U);
  EXPECT_EQ(run.outcomes.abandoned, 1U);
  EXPECT_EQ(run.schedule_lag.count, 101U);
}

TEST_F(LiveRunTest, ThroughputIsThatOfTheLockHoweverManyWait) {
  // One section at a time, 20 ms each: 50 in a second, though all 32 clients began to wait in the
  // warm-up.
  plan_.workload.clients = 32;
  plan_.workload.warmup = 60ms;
  plan_.workload.duration = 1s;
  hold(20ms);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_NEAR(static_cast<double>(run.sections), 50, 1);
  EXPECT_DOUBLE_EQ(run.attempts_per_grant, 1);
  const double parts =
      run.wait.round_trip_seconds + run.wait.backoff_seconds + run.wait.notified_seconds;
  // Without those that were cut off at the end.
  double mean = 0;
  for (const auto& bucket : run.acquire_service.buckets) {
    mean += bucket.upper * static_cast<double>(bucket.count);
  }
  mean /= static_cast<double>(run.acquire_service.count);
  EXPECT_NEAR(parts, mean, 0.02 * mean);
}

TEST_F(LiveRunTest, SectionsThatNoClientCameToBeginAreAbandonedAndLate) {
  // 100 sections are due; the only client can do five in time, and five more until the last waits
  // are cut off.
  plan_.workload.clients = 1;
  open_loop(1000);
  plan_.workload.duration = 100ms;
  plan_.workload.acquire_timeout = 60ms;
  plan_.workload.strategy.command_timeout = 40ms;
  hold(20ms);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_EQ(run.acquire.count + run.outcomes.abandoned, run.schedule_lag.count);
  EXPECT_EQ(run.schedule_lag.count, 100U);
  EXPECT_NEAR(static_cast<double>(run.outcomes.acquired), 5, 1);
  EXPECT_NEAR(static_cast<double>(run.outcomes.abandoned), 90, 1);
  EXPECT_NEAR(run.fairness.longest_wait_seconds, 0.19, 0.002);
  EXPECT_FALSE(run.generator.valid);
  // No more than the load requests.
  plan_.workload.iterations = 10;
  const results::Run limited = run_one(named("local-mutex"));
  EXPECT_EQ(limited.acquire.count + limited.outcomes.abandoned, 10U);
  EXPECT_NEAR(limited.fairness.longest_wait_seconds, 0.18, 0.02);
}

TEST_F(LiveRunTest, AStopInTheWarmUpLeavesNothingMeasured) {
  // Sections are due every millisecond, while the only client is in its first one.
  plan_.workload.clients = 1;
  open_loop(1000);
  plan_.workload.warmup = 60s;
  const results::Run run =
      run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
        context.env.wait(nullptr, context.env.now() + 20ms, {});
        stop_.request_stop();
        return grant(request);
      }});
  EXPECT_EQ(run.outcomes.abandoned, 0U);
  EXPECT_EQ(run.schedule_lag.count, 0U);
  EXPECT_EQ(run.fairness.longest_wait_seconds, 0);
}

}  // namespace
}  // namespace lockbench::loadgen

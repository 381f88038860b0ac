#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Verdict;
using testing::ElementsAre;

TEST_F(LiveRunTest, TheWarmUpIsInTheSeriesAndTheAuditOnly) {
  plan_.workload.warmup = 400ms;
  plan_.workload.duration = 400ms;
  plan_.workload.think = DurationDistribution::constant(1ms);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_NEAR(static_cast<double>(run.sections), 4 * 400, 8) << "a thought of 1 ms after each";
  EXPECT_NEAR(static_cast<double>(run.audit.increments), 2 * 4 * 400, 16);
  EXPECT_EQ(run.acquire.count, run.sections);
  EXPECT_EQ(sections_of(run.series), run.audit.increments);
  EXPECT_DOUBLE_EQ(run.duration_seconds, 0.4);
  EXPECT_DOUBLE_EQ(run.series.back().t, 0.8);
}

TEST_F(LiveRunTest, TheSeriesAddsUpToTheTotals) {
  plan_.workload.duration = 1s;
  hold(5ms);  // so that sections are under way when the end comes
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_EQ(run.sections, 200U) << "one at a time, 5 ms each";
  EXPECT_EQ(sections_of(run.series), run.audit.increments);
  // What is granted when the time is up is in the series and the audit only.
  EXPECT_LE(run.sections, run.audit.increments);
  EXPECT_GE(run.sections + 4, run.audit.increments);
}

TEST_F(LiveRunTest, TheOpenLoopEndsWithItsLastSection) {
  // Due within half a second. The starts that the other clients wait for come later, up to 10 s.
  plan_.workload.clients = 200;
  plan_.workload.rate = 20;
  plan_.workload.arrival = Arrival::constant;
  end_after(11);
  const results::Run run = run_one(named("none"));
  EXPECT_EQ(run.sections, 11U);
  EXPECT_NEAR(run.duration_seconds, 0.5, 1e-4);
}

TEST_F(LiveRunTest, NobodyThinksLongerThanThereAreSections) {
  plan_.workload.think = DurationDistribution::constant(30s);
  end_after(4);
  const results::Run run = run_one(named("none"));
  EXPECT_EQ(run.sections, 4U);
  EXPECT_LT(run.duration_seconds, 0.001);
}

TEST_F(LiveRunTest, TheOpenLoopStopsWithItsDuration) {
  plan_.workload.rate = 200;
  plan_.workload.arrival = Arrival::constant;
  plan_.workload.duration = 1s;
  const results::Run run = run_one(named("none"));
  EXPECT_EQ(run.sections, 200U) << "due at 0, 5, ..., 995 ms";
  EXPECT_EQ(run.schedule_lag.count, 200U);
  EXPECT_EQ(run.schedule_lag.max, 0);
  EXPECT_DOUBLE_EQ(run.duration_seconds, 1);
}

TEST_F(LiveRunTest, TheClosedLoopHasNoSchedule) {
  end_after(10);
  EXPECT_EQ(run_one(named("none")).schedule_lag.count, 0U);
}

TEST_F(LiveRunTest, LateSectionsAreMeasuredFromTheirIntendedStart) {
  // Due every millisecond, and each keeps the only client for 200 ms.
  plan_.workload.clients = 1;
  plan_.workload.rate = 1000;
  plan_.workload.arrival = Arrival::constant;
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
  plan_.workload.rate = 1000;
  plan_.workload.arrival = Arrival::constant;
  plan_.workload.longest_lag = 50ms;
  plan_.workload.duration = 700ms;
  hold(300ms);
  const results::Run run = run_one(leaky_lock);
  // Sections begin at 0, 300 and 600 ms, the latter two 50 ms late: those in between are lost, and
  // those after.
  EXPECT_NEAR(static_cast<double>(run.outcomes.abandoned), 249 + 299 + 149, 3);
  EXPECT_NEAR(run.fairness.longest_wait_seconds, 0.349, 0.002);
  EXPECT_TRUE(run.fairness.longest_wait_at_least);
}

TEST_F(LiveRunTest, TimeOutsAreCountedAndAreInTheLongestWait) {
  plan_.workload.acquire_timeout = 5ms;
  plan_.workload.duration = 500ms;
  const results::Run run = run_one({.acquire = wait_in_vain});
  EXPECT_EQ(run.outcomes.timed_out, 4U * 99) << "a client yields after each, for 1 us";
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
  EXPECT_EQ(run.audit.verdict, Verdict::exclusive);
}

/// A store that takes its time to end a wait.
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

TEST_F(LiveRunTest, WhoHasWaitedSinceTheWarmUpHasWaitedTheLongest) {
  plan_.workload.warmup = 400ms;
  plan_.workload.duration = 400ms;
  const results::Run run = run_one({.acquire = wait_in_vain_and_end_late});
  EXPECT_EQ(run.outcomes.abandoned, 4U);
  EXPECT_DOUBLE_EQ(run.fairness.longest_wait_seconds, 0.8) << "not after the end";
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
  // 100 are due, of which the only client can do five.
  plan_.workload.clients = 1;
  plan_.workload.rate = 1000;
  plan_.workload.arrival = Arrival::constant;
  plan_.workload.duration = 100ms;
  hold(20ms);
  const results::Run run = run_one(named("local-mutex"));
  // One may be granted when the time is up: late, but no section of the run's.
  const std::uint64_t ended = run.outcomes.acquired + run.outcomes.abandoned;
  EXPECT_GE(ended + 1, run.schedule_lag.count);
  EXPECT_LE(ended, run.schedule_lag.count);
  EXPECT_NEAR(static_cast<double>(run.outcomes.abandoned), 95, 1);
  EXPECT_NEAR(run.fairness.longest_wait_seconds, 0.095, 0.002);
  EXPECT_FALSE(run.generator.valid);
  // Not more than the load asks for.
  plan_.workload.iterations = 10;
  const results::Run limited = run_one(named("local-mutex"));
  EXPECT_GE(limited.outcomes.acquired + limited.outcomes.abandoned, 9U);
  EXPECT_LE(limited.outcomes.acquired + limited.outcomes.abandoned, 10U);
  EXPECT_NEAR(limited.fairness.longest_wait_seconds, 0.095, 0.002);
}

TEST_F(LiveRunTest, AStopInTheWarmUpLeavesNothingMeasured) {
  // A section is due every millisecond, and the only client is in its first one.
  plan_.workload.clients = 1;
  plan_.workload.rate = 1000;
  plan_.workload.arrival = Arrival::constant;
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

TEST_F(LiveRunTest, TheRateThatIsShownIsThatOfASecondHoweverShortTheInterval) {
  plan_.workload.rate = 200;
  plan_.workload.arrival = Arrival::constant;
  plan_.workload.warmup = 250ms;
  plan_.workload.duration = 250ms;
  run_one(named("none"));
  EXPECT_NEAR(watcher_.rates.back(), 200, 4) << "50 sections in a quarter of a second";
}

TEST_F(LiveRunTest, ARunIsRepeatedByItsNonceAndItsSeed) {
  plan_.nonce = 1;
  plan_.workload.rate = 1000;
  plan_.workload.hold = DurationDistribution::exponential(5ms);
  end_after(200);
  const auto play = [this] {
    std::vector<std::tuple<int, TimePoint, std::uint64_t>> asked;
    const results::Run run =
        run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
          const std::uint64_t drawn = context.env.random();
          asked.emplace_back(context.client, context.env.now(), drawn);
          context.env.wait(nullptr, context.env.now() + std::chrono::microseconds(drawn % 1000),
                           request.stop);
          return grant(request);
        }});
    return std::tuple(asked, run.acquire.max, run.hold.max, run.duration_seconds);
  };
  const auto once = play();
  EXPECT_EQ(play(), once);
  plan_.workload.seed += 1;
  EXPECT_NE(play(), once);
  plan_.workload.seed -= 1;
  plan_.nonce = 2;
  EXPECT_NE(play(), once);
}

TEST_F(LiveRunTest, AClientThatAlwaysWinsIsSeen) {
  plan_.workload.duration = 400ms;
  plan_.workload.think = DurationDistribution::constant(1ms);
  const results::Run run =
      run_one({.acquire = [](const Context& context, const AcquireRequest& request) {
        return context.client == 0 ? grant(request) : wait_in_vain(context, request);
      }});
  EXPECT_EQ(run.sections, 400U);
  EXPECT_DOUBLE_EQ(run.fairness.jain, 0.25);
  EXPECT_EQ(run.fairness.longest_streak, run.audit.increments);
  EXPECT_THAT(run.fairness.per_client, ElementsAre(run.sections, 0, 0, 0));
}

TEST_F(LiveRunTest, AFairLockIsFair) {
  hold(1ms);
  end_after(200);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_DOUBLE_EQ(run.fairness.jain, 1);
  EXPECT_EQ(run.fairness.longest_streak, 1U);
}

}  // namespace
}  // namespace lockbench::loadgen

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Verdict;
using testing::ElementsAre;

/// On threads that clients share, in real time.
class LiveRunInRealTime : public LiveRunTest {
 protected:
  LiveRunInRealTime() { real_time_ = true; }
};

TEST_F(LiveRunTest, AStopEndsTheRunAndReportsWhatThereIs) {
  plan_.workload.duration = 60s;
  std::atomic<int> acquisitions{0};
  const Behaviour stopping{.acquire = [&](const Context&, const AcquireRequest& request) {
    if (++acquisitions == 20) stop_.request_stop();
    return grant(request);
  }};
  const Descriptor strategy = scripted("stopping", stopping);
  const RunReport report = run({&strategy, &named("none")});
  EXPECT_TRUE(report.interrupted);
  ASSERT_EQ(report.runs.size(), 1U);
  EXPECT_EQ(report.runs[0].strategy, "stopping");
  EXPECT_GE(report.runs[0].sections, 20U);
  EXPECT_LT(report.runs[0].duration_seconds, 60);
  EXPECT_TRUE(report.not_started.empty());
}

TEST_F(LiveRunTest, AStopBeforeTheStartLeavesNothingToReport) {
  stop_.request_stop();
  const RunReport report = run({&named("none")});
  EXPECT_TRUE(report.interrupted);
  EXPECT_TRUE(report.runs.empty());
  EXPECT_TRUE(report.not_started.empty());
}

TEST_F(LiveRunTest, AStopWhileConnectingIsNoFailure) {
  const Behaviour stopping{.acquire = leaky.acquire, .connect = [&](const Context& context) {
                             stop_.request_stop();
                             context.env.wait(nullptr, context.env.now() + 5ms, {});
                             return StoreResult<void>();
                           }};
  plan_.workload.duration = 60s;
  const Descriptor strategy = scripted("stopping", stopping);
  const RunReport report = run({&strategy});
  EXPECT_TRUE(report.interrupted);
  EXPECT_TRUE(report.not_started.empty());
}

TEST_F(LiveRunInRealTime, AStoreThatCannotBeReachedIsNotStartedAndTheOthersRun) {
  std::atomic<int> acquisitions{0};
  const Behaviour unreachable{
      .acquire =
          [&](const Context&, const AcquireRequest& request) {
            ++acquisitions;
            return grant(request);
          },
      .connect = [](const Context& context) -> StoreResult<void> {
        if (context.client < 3) return {};
        return tl::unexpected(StoreError{StoreError::Kind::not_sent, "somewhere:1: no route"});
      }};
  const Descriptor strategy = scripted("unreachable", unreachable);
  end_after(10);
  const RunReport report = run({&strategy, &named("none")});
  ASSERT_EQ(report.not_started.size(), 1U);
  EXPECT_EQ(report.not_started[0].strategy, "unreachable");
  EXPECT_EQ(report.not_started[0].reason, "somewhere:1: no route");
  EXPECT_EQ(acquisitions, 0);
  ASSERT_EQ(report.runs.size(), 1U);
  EXPECT_EQ(report.runs[0].strategy, "none");
  EXPECT_FALSE(report.interrupted);
}

TEST_F(LiveRunTest, AStoreThatFailsIsNotAskedInATightLoop) {
  plan_.workload.duration = 1s;
  for (const AcquireOutcome what : {AcquireOutcome::failed, AcquireOutcome::unknown}) {
    std::atomic<std::uint64_t> asked{0};
    const results::Run run = run_one({.acquire = [&](const Context&, const AcquireRequest&) {
      ++asked;
      return outcome(what, "the store is down");
    }});
    EXPECT_GT(asked, 0U);
    EXPECT_LT(asked, 1000U) << "four clients in a second";
    EXPECT_EQ(what == AcquireOutcome::failed ? run.outcomes.failed : run.outcomes.unknown, asked);
    EXPECT_EQ(run.outcomes.failed + run.outcomes.unknown, asked);
    EXPECT_EQ(run.sections, 0U);
    EXPECT_EQ(run.acquire.count, 0U);
    EXPECT_EQ(run.audit.verdict, Verdict::unaudited);
    ASSERT_EQ(run.errors.size(), 1U);
    EXPECT_EQ(run.errors[0], fmt::format("{} × the store is down", asked.load()));
    std::uint64_t in_series = 0;
    for (const results::SeriesPoint& point : run.series) in_series += point.failed;
    EXPECT_EQ(in_series, asked);
  }
}

TEST_F(LiveRunInRealTime, AClientThatThrowsFailsAndTheOthersGoOn) {
  end_after(50);
  std::atomic<bool> thrown{false};
  const results::Run run = run_one(
      {.acquire = [&](const Context& context, const AcquireRequest& request) -> AcquireResult {
        if (context.client == 1) {
          thrown = true;
          throw std::out_of_range("vector::at");
        }
        while (!thrown) context.env.wait(nullptr, context.env.now() + 1ms, {});
        return grant(request);
      }});
  EXPECT_EQ(run.sections, 49U) << "all but the one that it had begun";
  EXPECT_EQ(run.fairness.per_client.at(1), 0U);
  EXPECT_THAT(run.errors, ElementsAre("1 × client 2 ended: vector::at"));
}

TEST_F(LiveRunTest, WithoutClientsThatWorkTheRunIsOver) {
  plan_.workload.duration = 60s;
  const results::Run run =
      run_one({.acquire = [](const Context&, const AcquireRequest&) -> AcquireResult { throw 1; }});
  EXPECT_LT(run.duration_seconds, 60);
  EXPECT_THAT(run.errors, testing::Contains(testing::HasSubstr("an unknown exception")));
}

TEST_F(LiveRunTest, AClientThatThrowsWhileConnectingKeepsTheRunFromStarting) {
  const Behaviour throwing{
      .acquire = leaky.acquire,
      .connect = [](const Context&) -> StoreResult<void> { throw std::bad_alloc(); }};
  const Descriptor strategy = scripted("throwing", throwing);
  const RunReport report = run({&strategy});
  ASSERT_EQ(report.not_started.size(), 1U);
  EXPECT_THAT(report.not_started[0].reason, testing::HasSubstr("std::bad_alloc"));
}

TEST_F(LiveRunTest, WhatAServiceReportsFailsTheRun) {
  end_after(5);
  const results::Run run = run_one(
      {.acquire = [](const Context& context, const AcquireRequest& request) -> AcquireResult {
        make_service_env(context.services)->report("leases are not renewed any more");
        return grant(request);
      }});
  EXPECT_THAT(run.errors, ElementsAre(testing::HasSubstr("leases are not renewed any more")));
}

TEST_F(LiveRunTest, AReleaseThatFailedIsCountedWithItsReason) {
  end_after(5);
  const results::Run run = run_one({.acquire = leaky.acquire, .release = [](const Lease&) {
                                      return ReleaseResult{ReleaseOutcome::failed, "no answer"};
                                    }});
  EXPECT_EQ(run.releases_failed, 5U);
  EXPECT_EQ(run.leases_lost, 0U);
  EXPECT_THAT(run.errors, ElementsAre("5 × no answer"));
}

}  // namespace
}  // namespace lockbench::loadgen

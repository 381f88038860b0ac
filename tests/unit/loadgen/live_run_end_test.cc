#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Verdict;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;

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

class LiveRunLossTest : public LiveRunTest {
 protected:
  results::Distribution losses(Duration valid_until, std::optional<Duration> confirmed);
};

TEST_F(LiveRunLossTest, ALossThatTheClientKnewOfIsCountedOnce) {
  end_after(30);
  const results::Run run =
      run_one({.acquire =
                   [](const Context& context, const AcquireRequest& request) {
                     AcquireResult granted = grant(request);
                     granted.lease->state->extend(context.env.now() - 2s, context.env.now() - 3s);
                     granted.lease->state->mark_lost(context.env.now());
                     return granted;
                   },
               .release =
                   [](const Lease&) {
                     return ReleaseResult{ReleaseOutcome::not_owner, {}};
                   }});
  EXPECT_EQ(run.leases_lost, 30U);
  EXPECT_EQ(run.loss_to_knowledge.count, 30U);
  EXPECT_GE(run.loss_to_knowledge.min, 2.0);
}

/// Runs sections whose leases are lost at once, and end and were confirmed so long before.
results::Distribution LiveRunLossTest::losses(Duration valid_until,
                                              std::optional<Duration> confirmed) {
  end_after(10);
  const results::Run run =
      run_one({.acquire =
                   [=](const Context& context, const AcquireRequest& request) {
                     AcquireResult granted = grant(request);
                     const TimePoint now = context.env.now();
                     granted.lease->state->extend(now + valid_until,
                                                  confirmed ? now + *confirmed : TimePoint::min());
                     return granted;
                   },
               .release =
                   [](const Lease&) {
                     return ReleaseResult{ReleaseOutcome::not_owner, {}};
                   }});
  EXPECT_EQ(run.leases_lost, 10U);
  return run.loss_to_knowledge;
}

TEST_F(LiveRunLossTest, ALossCountsFromTheEndOfValidity) {
  const results::Distribution known_after = losses(-2s, -60s);
  EXPECT_EQ(known_after.count, 10U);
  EXPECT_GE(known_after.min, 2.0);
  EXPECT_LT(known_after.max, 60.0);
}

TEST_F(LiveRunLossTest, AnEarlierLossCountsFromTheLatestConfirmation) {
  const results::Distribution known_after = losses(1h, -60s);
  EXPECT_EQ(known_after.count, 10U);
  EXPECT_GE(known_after.min, 60.0);
}

TEST_F(LiveRunLossTest, AnEarlierLossWithoutConfirmationHasNoKnownLength) {
  EXPECT_EQ(losses(1h, std::nullopt).count, 0U);
}

class Remembering : public RunWatcher {
 public:
  void run_begins(const RunShared& run) override {
    ++begun;
    current = &run;
  }
  void run_ends(const RunShared& run, const results::Run* result) override {
    ++ended;
    if (&run == current && result != nullptr) sections = result->sections;
    had_result = result != nullptr;
  }

  int begun = 0, ended = 0;
  bool had_result = false;
  std::uint64_t sections = 0;
  const RunShared* current = nullptr;
};

class RunWatcherTest : public LiveRunTest {
 protected:
  RunWatcherTest() {
    plan_.workload.clients = 1;
    plan_.workload.duration = 1s;
    plan_.watcher = &remembering_;
  }

  Remembering remembering_;
};

TEST_F(RunWatcherTest, SeesARunsBeginningAndEnd) {
  end_after(10);
  run_one(leaky_lock);
  EXPECT_EQ(remembering_.begun, 1);
  EXPECT_EQ(remembering_.ended, 1);
  EXPECT_EQ(remembering_.sections, 10U);
}

TEST_F(RunWatcherTest, SeesTheEndOfARunThatCannotStart) {
  plan_.endpoints = {{"redis", {"redis://127.0.0.1:1"}}};
  EXPECT_EQ(run({&named("redis-setnx")}).not_started.size(), 1U);
  EXPECT_EQ(remembering_.begun, 1);
  EXPECT_EQ(remembering_.ended, 1);
  EXPECT_FALSE(remembering_.had_result);
}

/// Runs whose clients are fibers of two threads, in real time.
class LiveRunOnFibers : public LiveRunTest {
 protected:
  LiveRunOnFibers() {
    real_time_ = true;
    plan_.workload.threads = 2;
  }
};

TEST_F(LiveRunOnFibers, AMutexLosesNone) {
  hold(100us);
  plan_.workload.clients = 8;
  end_after(400);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_EQ(run.sections, 400U);
  EXPECT_EQ(run.audit.counter, 400U);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::exclusive);
  EXPECT_GT(run.handoff.count, 0U);
  EXPECT_GT(run.direct_handoffs, 0U);
  EXPECT_LE(run.direct_handoffs, run.awaited_releases);
}

TEST_F(LiveRunOnFibers, ClientsShareAsManyThreadsAsAskedFor) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const Behaviour noting{.acquire = leaky.acquire, .connect = [&](const Context&) {
                           const std::scoped_lock lock(mutex);
                           threads.insert(std::this_thread::get_id());
                           return StoreResult<void>();
                         }};
  plan_.workload.clients = 300;
  hold(1ms);
  end_after(3000);
  const results::Run run = run_one(noting);
  EXPECT_EQ(threads.size(), 2U);
  EXPECT_EQ(run.generator.clients_on, "fibers");
  EXPECT_EQ(run.generator.threads, 2U);
  EXPECT_GT(run.generator.busiest_thread_share.value(), 0);
  EXPECT_EQ(run.sections, 3000U);
  EXPECT_THAT(run.fairness.per_client, Each(Ge(1U))) << "nobody was left out";
}

TEST(GeneratorThreads, LeaveACoreToPrivateServersAndAreNoMoreThanClients) {
  Workload workload{.clients = 100'000};
  const int cores = generator_threads(workload, false);
  EXPECT_GE(cores, 1);
  EXPECT_EQ(generator_threads(workload, true), std::max(1, cores - 1));
  workload.threads = 7;
  EXPECT_EQ(generator_threads(workload, true), 7);
  workload.clients = 3;
  EXPECT_EQ(generator_threads(workload, true), 3);
}

}  // namespace
}  // namespace lockbench::loadgen

#include "loadgen/live_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>

#include "strategies/registry.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;
using results::Verdict;
using testing::ElementsAre;

/// What a lock of the tests' own does. All of it runs on the clients' threads.
struct Behaviour {
  std::function<AcquireResult(const Context&, const AcquireRequest&)> acquire;
  std::function<ReleaseResult(const Lease&)> release = [](const Lease&) {
    return ReleaseResult{ReleaseOutcome::released, {}};
  };
  std::function<StoreResult<void>(const Context&)> connect = [](const Context&) {
    return StoreResult<void>();
  };
};

class ScriptedLock : public LockStrategy {
 public:
  ScriptedLock(const Context& context, const Behaviour& behaviour)
      : context_(context), behaviour_(behaviour) {}

  StoreResult<void> connect() override { return behaviour_.connect(context_); }
  AcquireResult acquire(const AcquireRequest& request) override {
    return behaviour_.acquire(context_, request);
  }
  ReleaseResult release(const Lease& lease) override { return behaviour_.release(lease); }
  RenewResult renew(const Lease&, Duration) override { return {RenewOutcome::unsupported, {}}; }

 private:
  const Context context_;
  const Behaviour& behaviour_;
};

/// `behaviour` must outlive the descriptor. It promises exclusion, whether it keeps that or not.
Descriptor scripted(std::string_view name, const Behaviour& behaviour) {
  return {.name = name, .backend = "local", .make = [&behaviour](const Context& context) {
            return std::make_unique<ScriptedLock>(context, behaviour);
          }};
}

AcquireResult grant(const AcquireRequest& request) {
  AcquireResult result;
  result.outcome = AcquireOutcome::acquired;
  result.attempts = 1;
  result.lease = Lease{.key = std::string(request.key),
                       .state = std::make_shared<LeaseState>(TimePoint::max())};
  return result;
}

AcquireResult outcome(AcquireOutcome what, std::string reason = {}) {
  AcquireResult result;
  result.outcome = what;
  result.attempts = 1;
  result.reason = std::move(reason);
  return result;
}

/// Waits until the deadline or a stop, and never gets anything.
AcquireResult wait_in_vain(const Context& context, const AcquireRequest& request) {
  const WaitResult waited = context.env.wait(nullptr, request.deadline, request.stop);
  return outcome(waited == WaitResult::stopped ? AcquireOutcome::abandoned
                                               : AcquireOutcome::timed_out);
}

/// Lets everybody in.
const Behaviour leaky{
    .acquire = [](const Context&, const AcquireRequest& request) { return grant(request); }};
const Descriptor leaky_lock = scripted("leaky", leaky);

class Watcher : public ProgressObserver {
 public:
  void on_progress(const Progress& progress) override {
    phases.push_back(progress.phase);
    runs.insert(progress.run);
  }
  void on_warning(const std::string& line) override { warnings.push_back(line); }

  std::vector<Progress::Phase> phases;
  std::set<int> runs;
  std::vector<std::string> warnings;
};

std::uint64_t sections_of(const std::vector<results::SeriesPoint>& series) {
  return std::accumulate(
      series.begin(), series.end(), std::uint64_t{0},
      [](std::uint64_t sum, const results::SeriesPoint& point) { return sum + point.sections; });
}

class LiveRunTest : public testing::Test {
 protected:
  LiveRunTest() {
    plan_.run_id = "test";
    plan_.workload = {.clients = 4, .duration = 150ms, .warmup = 0ms};
  }

  RunReport run(std::vector<const Descriptor*> strategies) {
    plan_.strategies = std::move(strategies);
    return run_plan(plan_, watcher_, stop_.get_token());
  }

  /// For runs that must start.
  results::Run run_one(const Descriptor& strategy) {
    RunReport report = run({&strategy});
    EXPECT_TRUE(report.not_started.empty()) << report.not_started.at(0).reason;
    if (report.runs.size() != 1) throw std::runtime_error("not one run");
    return std::move(report.runs[0]);
  }
  results::Run run_one(const Behaviour& behaviour) {
    return run_one(scripted("scripted", behaviour));
  }

  /// Ends after so many sections, however slow the machine is.
  void end_after(std::uint64_t sections) {
    plan_.workload.iterations = sections;
    plan_.workload.duration = 60s;
  }
  results::Distribution losses(Duration valid_until, std::optional<Duration> confirmed);
  void hold(Duration duration) { plan_.workload.hold = DurationDistribution::constant(duration); }

  static const Descriptor& named(std::string_view name) { return *find_strategy(name); }

  RunPlan plan_;
  Watcher watcher_;
  std::stop_source stop_;
};

TEST_F(LiveRunTest, NoLockLosesUpdatesAndSaysThatItPromisedNothing) {
  hold(1ms);
  end_after(200);
  const results::Run run = run_one(named("none"));
  EXPECT_EQ(run.strategy, "none");
  EXPECT_EQ(run.backend, "local");
  EXPECT_EQ(run.audit.increments, 200U);
  EXPECT_GT(run.audit.lost_updates, 0U);
  EXPECT_EQ(run.audit.lost_updates, run.audit.increments - run.audit.counter);
  EXPECT_GT(run.audit.overlaps, 0U);
  EXPECT_GT(run.audit.overlap_seconds, 0);
  EXPECT_EQ(run.audit.verdict, Verdict::unprotected);
  EXPECT_EQ(run.commands_per_section, 0);
  EXPECT_EQ(run.herd_factor, std::nullopt);
}

TEST_F(LiveRunTest, WhatIsDoneToTheServersIsDoneWhileClientsAreConnectedAndNoneWorks) {
  std::atomic<int> connected = 0, sections = 0;
  int connected_before = -1, sections_before = -1, sections_after = -1;
  Behaviour behaviour;
  behaviour.connect = [&](const Context&) {
    ++connected;
    return StoreResult<void>();
  };
  behaviour.acquire = [&](const Context&, const AcquireRequest& request) {
    ++sections;
    return grant(request);
  };
  plan_.before_load = [&] {
    connected_before = connected;
    sections_before = sections;
  };
  plan_.after_load = [&] { sections_after = sections; };
  run_one(behaviour);
  EXPECT_EQ(connected_before, 4);
  EXPECT_EQ(sections_before, 0);
  EXPECT_GT(sections_after, 0);
  EXPECT_EQ(sections_after, sections) << "all had ended";
}

TEST_F(LiveRunTest, AMutexLosesNone) {
  hold(100us);
  end_after(400);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_EQ(run.sections, 400U);
  EXPECT_EQ(run.audit.increments, 400U);
  EXPECT_EQ(run.audit.counter, 400U);
  EXPECT_EQ(run.audit.lost_updates, 0U);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::exclusive);
  // Four clients and one lock: somebody was waiting at a release, and was woken.
  EXPECT_GT(run.handoff.count, 0U);
  EXPECT_GT(run.herd_factor.value_or(0), 0);
  EXPECT_GT(run.wait.notified_seconds, 0);
}

TEST_F(LiveRunTest, ALockThatLetsTwoInIsViolated) {
  hold(1ms);
  end_after(100);
  const results::Run run = run_one(leaky_lock);
  EXPECT_GT(run.audit.overlaps, 0U);
  EXPECT_GT(run.audit.lost_updates, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::violated);
}

/// Grants each section in the mode asked for, by a lock that keeps writers and readers apart, or
/// not.
class SharedLock {
 public:
  explicit SharedLock(bool excludes) : excludes_(excludes) {}

  Behaviour behaviour() {
    return {.acquire =
                [this](const Context&, const AcquireRequest& request) {
                  if (excludes_) enter(request.mode);
                  AcquireResult granted = grant(request);
                  granted.lease->mode = request.mode;
                  return granted;
                },
            .release =
                [this](const Lease& lease) {
                  if (excludes_) leave(lease.mode);
                  return ReleaseResult{ReleaseOutcome::released, {}};
                }};
  }

 private:
  void enter(Mode mode) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !writing_ && (mode == Mode::shared || readers_ == 0); });
    (mode == Mode::shared ? readers_ : writing_) += 1;
  }
  void leave(Mode mode) {
    const std::scoped_lock lock(mutex_);
    (mode == Mode::shared ? readers_ : writing_) -= 1;
    changed_.notify_all();
  }

  const bool excludes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int readers_ = 0, writing_ = 0;
};

TEST_F(LiveRunTest, SharedSectionsReadAndDoNotIncrement) {
  hold(100us);
  end_after(400);
  plan_.workload.shared_share = 0.5;
  SharedLock lock(true);
  const Behaviour behaviour = lock.behaviour();
  const results::Run run = run_one(behaviour);
  EXPECT_EQ(run.sections, 400U);
  EXPECT_GT(run.shared_sections, 100U);
  EXPECT_LT(run.shared_sections, 300U);
  EXPECT_EQ(run.audit.increments, run.sections - run.shared_sections);
  EXPECT_EQ(run.audit.counter, run.audit.increments);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::exclusive);
}

TEST_F(LiveRunTest, ASharedSectionBesideAnExclusiveOneIsAViolation) {
  hold(1ms);
  end_after(200);
  plan_.workload.shared_share = 0.5;
  SharedLock lock(false);
  const Behaviour behaviour = lock.behaviour();
  const results::Run run = run_one(behaviour);
  EXPECT_GT(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::violated);
}

TEST_F(LiveRunTest, SharedSectionsAloneMayOverlap) {
  hold(1ms);
  end_after(100);
  plan_.workload.shared_share = 1;
  SharedLock lock(false);
  const Behaviour behaviour = lock.behaviour();
  const results::Run run = run_one(behaviour);
  EXPECT_EQ(run.shared_sections, 100U);
  EXPECT_EQ(run.audit.increments, 0U);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::unaudited) << "nothing was written";
}

TEST_F(LiveRunTest, ClientsWithKeysOfTheirOwnDoNotMeet) {
  hold(1ms);
  end_after(100);
  plan_.workload.key_per_client = true;
  const results::Run run = run_one(leaky_lock);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.lost_updates, 0U);
  EXPECT_EQ(run.audit.counter, 100U);
  EXPECT_EQ(run.audit.verdict, Verdict::exclusive);
}

TEST_F(LiveRunTest, FencingNumbersThatDoNotGrowAreAViolation) {
  plan_.workload.clients = 1;
  end_after(10);
  const results::Run run = run_one({.acquire = [](const Context&, const AcquireRequest& request) {
    AcquireResult granted = grant(request);
    granted.lease->fencing = 7;
    return granted;
  }});
  EXPECT_EQ(run.audit.fence_regressions, 9U);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::violated);
}

TEST_F(LiveRunTest, KeysAreNamedAfterRunStrategyAndRepetition) {
  std::mutex mutex;
  std::set<std::string> keys;
  plan_.workload.keys = 2;
  plan_.workload.repeat = 2;
  end_after(100);
  const Behaviour noting{.acquire = [&](const Context&, const AcquireRequest& request) {
    const std::scoped_lock lock(mutex);
    keys.emplace(request.key);
    return grant(request);
  }};
  const Descriptor strategy = scripted("noting", noting);
  run({&strategy});
  EXPECT_THAT(keys, ElementsAre("lockbench:test:{noting:1:0}", "lockbench:test:{noting:1:1}",
                                "lockbench:test:{noting:2:0}", "lockbench:test:{noting:2:1}"));
}

TEST_F(LiveRunTest, EndsAfterExactlyTheSectionsAskedFor) {
  plan_.workload.warmup = 30ms;
  end_after(57);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_EQ(run.sections, 57U);
  EXPECT_EQ(run.outcomes.acquired, 57U);
  EXPECT_EQ(run.acquire.count, 57U);
  EXPECT_EQ(run.acquire_service.count, 57U);
  EXPECT_EQ(run.release.count, 57U);
  EXPECT_LT(run.duration_seconds, 60);
  EXPECT_EQ(std::accumulate(run.fairness.per_client.begin(), run.fairness.per_client.end(),
                            std::uint64_t{0}),
            57U);
}

TEST_F(LiveRunTest, TheWarmUpIsInTheSeriesAndTheAuditOnly) {
  plan_.workload.warmup = 60ms;
  plan_.workload.duration = 100ms;
  plan_.workload.think = DurationDistribution::constant(1ms);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_GT(run.sections, 0U);
  EXPECT_GT(run.audit.increments, run.sections);
  EXPECT_EQ(run.acquire.count, run.sections);
  EXPECT_EQ(sections_of(run.series), run.audit.increments);
  EXPECT_GE(run.duration_seconds, 0.1);
  EXPECT_GE(run.series.back().t, 0.16);
}

TEST_F(LiveRunTest, TheSeriesAddsUpToTheTotals) {
  hold(5ms);  // so that sections are under way when the end comes
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_GT(run.sections, 0U);
  EXPECT_EQ(sections_of(run.series), run.audit.increments);
  // What was granted when the time was up is in the series and the audit only.
  EXPECT_LE(run.sections, run.audit.increments);
  EXPECT_GE(run.sections + 4, run.audit.increments);
}

TEST_F(LiveRunTest, TheOpenLoopIsNotFasterThanItsRate) {
  plan_.workload.rate = 500;
  plan_.workload.arrival = Arrival::constant;
  end_after(50);
  const results::Run run = run_one(named("none"));
  EXPECT_EQ(run.sections, 50U);
  EXPECT_GE(run.duration_seconds, 49 * 0.002);
  EXPECT_EQ(run.schedule_lag.count, 50U);
}

TEST_F(LiveRunTest, TheOpenLoopStopsWithItsDuration) {
  plan_.workload.rate = 200;
  plan_.workload.arrival = Arrival::constant;
  plan_.workload.duration = 100ms;
  const results::Run run = run_one(named("none"));
  EXPECT_GT(run.sections, 0U);
  // Sections are due at 0, 5, 10 ms...; late is possible, early is not.
  EXPECT_LE(static_cast<double>(run.sections), run.duration_seconds * 200 + 1);
}

TEST_F(LiveRunTest, TheClosedLoopHasNoSchedule) {
  end_after(10);
  EXPECT_EQ(run_one(named("none")).schedule_lag.count, 0U);
}

TEST_F(LiveRunTest, LateSectionsAreMeasuredFromTheirIntendedStart) {
  // Due every millisecond, and each keeps the only client for 20 ms.
  plan_.workload.clients = 1;
  plan_.workload.rate = 1000;
  plan_.workload.arrival = Arrival::constant;
  plan_.workload.acquire_timeout = 50ms;
  hold(20ms);
  end_after(6);
  std::atomic<bool> deadline_had_passed{false};
  const results::Run run =
      run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
        if (request.deadline <= context.env.now()) deadline_had_passed = true;
        return grant(request);
      }});
  EXPECT_GE(run.schedule_lag.max, 5 * 0.019);
  EXPECT_GE(run.acquire.max, run.schedule_lag.max);
  EXPECT_LT(run.acquire_service.max, run.acquire.max);
  EXPECT_FALSE(deadline_had_passed) << "the deadline must run from the actual start";
}

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

TEST_F(LiveRunTest, AStoreThatCannotBeReachedIsNotStartedAndTheOthersRun) {
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
  for (const AcquireOutcome what : {AcquireOutcome::failed, AcquireOutcome::unknown}) {
    std::atomic<std::uint64_t> asked{0};
    const results::Run run = run_one({.acquire = [&](const Context&, const AcquireRequest&) {
      ++asked;
      return outcome(what, "the store is down");
    }});
    EXPECT_GT(asked, 0U);
    EXPECT_LT(asked, 400U) << "four clients in 150 ms";
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

TEST_F(LiveRunTest, TimeOutsAreCountedAndAreInTheLongestWait) {
  plan_.workload.acquire_timeout = 5ms;
  const results::Run run = run_one({.acquire = wait_in_vain});
  EXPECT_GT(run.outcomes.timed_out, 4U);
  EXPECT_EQ(run.sections, 0U);
  EXPECT_EQ(run.acquire.count, 0U);
  EXPECT_GE(run.fairness.longest_wait_seconds, 0.005);
}

TEST_F(LiveRunTest, WithoutTimeToWaitTheyAreRefused) {
  plan_.workload.acquire_timeout = 0ms;
  hold(2ms);
  end_after(300);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_GT(run.outcomes.refused, 0U);
  EXPECT_EQ(run.outcomes.acquired, 300U);
  EXPECT_EQ(run.sections, 300U);
  EXPECT_EQ(run.audit.verdict, Verdict::exclusive);
}

TEST_F(LiveRunTest, WhoStillWaitsAtTheEndIsAbandoned) {
  plan_.workload.duration = 60ms;
  const results::Run run = run_one({.acquire = wait_in_vain});
  EXPECT_EQ(run.outcomes.abandoned, 4U);
  EXPECT_EQ(run.outcomes.timed_out, 0U);
  EXPECT_GT(run.fairness.longest_wait_seconds, 0);
  EXPECT_EQ(run.series.back().waiters, 4U);
}

TEST_F(LiveRunTest, WhoHasWaitedSinceTheWarmUpHasWaitedTheLongest) {
  plan_.workload.warmup = 60ms;
  plan_.workload.duration = 60ms;
  const results::Run run = run_one({.acquire = wait_in_vain});
  EXPECT_EQ(run.outcomes.abandoned, 4U);
  EXPECT_GE(run.fairness.longest_wait_seconds, 0.06);
}

TEST_F(LiveRunTest, ThroughputIsThatOfTheLockHoweverManyWait) {
  // One section at a time, 4 ms each: 50 in 200 ms, though all 32 clients began to wait in the
  // warm-up.
  plan_.workload.clients = 32;
  plan_.workload.warmup = 60ms;
  plan_.workload.duration = 200ms;
  hold(4ms);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_LE(run.sections, 51U);
  // Slower than asked on a busy machine, but as fast as the holds that were measured.
  EXPECT_GE(static_cast<double>(run.sections) * run.hold.mean, 0.6 * run.duration_seconds);
  EXPECT_NEAR(run.attempts_per_grant, 1, 1e-9);
  const double parts =
      run.wait.round_trip_seconds + run.wait.backoff_seconds + run.wait.notified_seconds;
  EXPECT_LE(parts, run.acquire_service.mean * 1.02);
  EXPECT_GE(parts, run.acquire_service.mean * 0.5);
}

TEST_F(LiveRunTest, SectionsThatNoClientCameToBeginAreAbandonedAndLate) {
  // 100 are due, of which the only client can do five.
  plan_.workload.clients = 1;
  plan_.workload.rate = 1000;
  plan_.workload.arrival = Arrival::constant;
  plan_.workload.duration = 100ms;
  hold(20ms);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_EQ(run.outcomes.acquired + run.outcomes.abandoned, run.schedule_lag.count);
  EXPECT_GE(run.outcomes.abandoned, 90U);
  EXPECT_GE(run.fairness.longest_wait_seconds, 0.07);
  EXPECT_FALSE(run.generator.valid);
}

TEST_F(LiveRunTest, AClientThatAlwaysWinsIsSeen) {
  plan_.workload.duration = 100ms;
  plan_.workload.think = DurationDistribution::constant(1ms);
  const results::Run run =
      run_one({.acquire = [](const Context& context, const AcquireRequest& request) {
        return context.client == 0 ? grant(request) : wait_in_vain(context, request);
      }});
  EXPECT_GT(run.sections, 0U);
  EXPECT_DOUBLE_EQ(run.fairness.jain, 0.25);
  EXPECT_EQ(run.fairness.longest_streak, run.sections);
  EXPECT_THAT(run.fairness.per_client, ElementsAre(run.sections, 0, 0, 0));
}

TEST_F(LiveRunTest, AFairLockIsFair) {
  hold(1ms);
  end_after(200);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_GT(run.fairness.jain, 0.5);
  EXPECT_LT(run.fairness.longest_streak, 200U);
}

TEST_F(LiveRunTest, LostLeasesAreCounted) {
  end_after(30);
  const results::Run lost = run_one({.acquire = leaky.acquire, .release = [](const Lease&) {
                                       return ReleaseResult{ReleaseOutcome::not_owner, {}};
                                     }});
  EXPECT_EQ(lost.leases_lost, 30U);
  EXPECT_EQ(lost.releases_not_owner, 30U);
  EXPECT_EQ(lost.releases_failed, 0U);
  EXPECT_EQ(lost.sections, 30U);
}

TEST_F(LiveRunTest, ALossThatTheClientKnewOfIsCountedOnce) {
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
results::Distribution LiveRunTest::losses(Duration valid_until, std::optional<Duration> confirmed) {
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

TEST_F(LiveRunTest, ALossCountsFromTheEndOfValidity) {
  const results::Distribution known_after = losses(-2s, -60s);
  EXPECT_EQ(known_after.count, 10U);
  EXPECT_GE(known_after.min, 2.0);
  EXPECT_LT(known_after.max, 60.0);
}

TEST_F(LiveRunTest, AnEarlierLossCountsFromTheLatestConfirmation) {
  const results::Distribution known_after = losses(1h, -60s);
  EXPECT_EQ(known_after.count, 10U);
  EXPECT_GE(known_after.min, 60.0);
}

TEST_F(LiveRunTest, AnEarlierLossWithoutConfirmationHasNoKnownLength) {
  EXPECT_EQ(losses(1h, std::nullopt).count, 0U);
}

/// A lock whose clients have a service that sends a command and reports a renewal for each of them.
TEST_F(LiveRunTest, WhatServicesDoIsCountedInTheRunTheyServe) {
  end_after(20);
  const Behaviour served{.acquire = [](const Context& context, const AcquireRequest& request) {
    const auto world = context.services.get_or_make<EnvSource>(system_env_source).make();
    const CommandInfo command{.store = "s", .endpoint = "e", .name = "RENEW", .key = "k"};
    world->before_command(command);
    world->after_command(command, CommandEnd::answered);
    context.services.get_or_make<RenewalObserver>(make_deaf_observer)
        .on_renewal({.outcome = RenewalAnswer::renewed, .duration = 1ms, .margin = 1s});
    return grant(request);
  }};
  const results::Run run = run_one(served);
  ASSERT_TRUE(run.renewal);
  EXPECT_EQ(run.renewal->renewals, 20U);
  EXPECT_DOUBLE_EQ(run.commands_per_section, 1);
  EXPECT_FALSE(run_one(leaky_lock).renewal) << "another run, where nothing is renewed";
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

TEST_F(LiveRunTest, RepetitionsAreInterleaved) {
  end_after(5);
  plan_.workload.repeat = 2;
  const RunReport report = run({&named("none"), &named("local-mutex")});
  std::vector<std::string> order;
  for (const results::Run& one : report.runs) {
    order.push_back(fmt::format("{} {}", one.strategy, one.repetition));
    EXPECT_EQ(one.sections, 5U);
  }
  EXPECT_THAT(order, ElementsAre("none 1", "local-mutex 1", "none 2", "local-mutex 2"));
  EXPECT_THAT(watcher_.runs, ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(report.interrupted);
}

TEST_F(LiveRunTest, ProgressBeginsWithConnectingAndEndsWithDraining) {
  end_after(5);
  run_one(named("none"));
  ASSERT_FALSE(watcher_.phases.empty());
  EXPECT_EQ(watcher_.phases.front(), Progress::Phase::connecting);
  EXPECT_EQ(watcher_.phases.back(), Progress::Phase::draining);
  EXPECT_TRUE(watcher_.warnings.empty());
}

TEST_F(LiveRunTest, TheGeneratorsShareIsReported) {
  end_after(100);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_GT(run.generator.cpu_seconds, 0);
  EXPECT_GT(run.generator.cpu_share, 0);
  EXPECT_EQ(run.server_cpu_seconds_per_section, std::nullopt);
}

}  // namespace
}  // namespace lockbench

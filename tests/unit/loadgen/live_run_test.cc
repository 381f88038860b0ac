#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "results/stats/load_figures.h"
#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Verdict;
using testing::ElementsAre;

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
  end_after(20);
  run_one(behaviour);
  EXPECT_EQ(connected_before, 4);
  EXPECT_EQ(sections_before, 0);
  EXPECT_EQ(sections_after, 20);
  EXPECT_EQ(sections_after, sections) << "all had ended";
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
  run(noting);
  EXPECT_THAT(keys, ElementsAre("lockbench:test:{scripted:1:0}", "lockbench:test:{scripted:1:1}",
                                "lockbench:test:{scripted:2:0}", "lockbench:test:{scripted:2:1}"));
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
  EXPECT_EQ(watcher_.phases.front(), Progress::Phase::connecting);
  EXPECT_EQ(watcher_.phases.back(), Progress::Phase::draining);
  EXPECT_TRUE(watcher_.warnings.empty());
  EXPECT_LT(run.duration_seconds, 60);
  EXPECT_EQ(std::accumulate(run.fairness.per_client.begin(), run.fairness.per_client.end(),
                            std::uint64_t{0}),
            57U);
}

TEST_F(LiveRunTest, RepetitionsAreInterleavedInAlternatingOrder) {
  end_after(5);
  plan_.workload.repeat = 3;
  std::vector<RunPlan> plans(2, plan_);
  plans[0].strategies = {&named("none")};
  plans[1].strategies = {&named("local-mutex")};
  const RunReport report = run_plans(plans, watcher_, {});
  std::vector<std::string> order;
  for (const results::Run& one : report.runs) {
    order.push_back(fmt::format("{} {}", one.strategy, one.repetition));
    EXPECT_EQ(one.sections, 5U);
  }
  EXPECT_THAT(order, ElementsAre("none 1", "local-mutex 1", "local-mutex 2", "none 2", "none 3",
                                 "local-mutex 3"));
  EXPECT_THAT(watcher_.runs, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_FALSE(report.interrupted);
}

TEST_F(LiveRunTest, TheWarmUpIsProlongedForServersThatGetFaster) {
  plan_.workload.warmup = 100ms;
  plan_.workload.duration = 300ms;
  plan_.workload.clients = 1;
  plan_.warms_up = [](const Descriptor& strategy) { return strategy.name == "local-mutex"; };
  hold(10ms);
  const results::Run steady = run_one(named("local-mutex"));
  EXPECT_NEAR(steady.warmup_seconds, 3, 1e-6);
  EXPECT_NEAR(steady.duration_seconds, 0.3, 0.02);
  ASSERT_FALSE(steady.series.empty());
  EXPECT_TRUE(steady.series.front().warmup);
  EXPECT_FALSE(steady.series.back().warmup);
  EXPECT_LT(steady.sections, 35U) << "those of the warm-up are left out";
  EXPECT_NEAR(run_one(named("none")).warmup_seconds, 0.1, 1e-6);
}

TEST_F(LiveRunTest, TheMachineAndTheOtherProgramsOnItAreRecorded) {
  end_after(5);
  hold(20ms);
  int readings = 0;
  plan_.machine = [&readings] {
    const double later = readings++;
    return MachineReading{
        .cpu =
            MachineCpu{.total = 10 * later, .busy = 6 * later, .programs = 5 * later, .stolen = 0},
        .pressure_seconds = 0.01 * later};
  };
  plan_.private_cpu.all = [] { return 3.0; };
  const results::Generator generator = run_one(named("local-mutex")).generator;
  EXPECT_EQ(readings, 3) << "at the load's begin and end, and when all is drained";
  EXPECT_DOUBLE_EQ(generator.machine_cpu_share.value(), 0.6);
  EXPECT_GT(generator.pressure_share.value(), 0);
  EXPECT_NEAR(generator.other_cpu_share.value(), 0.5, 0.1) << "all but the generator itself";
  EXPECT_FALSE(generator.valid);
}

TEST_F(LiveRunTest, AUsersServerMayBeWhatTheMachineIsBusyWith) {
  end_after(5);
  plan_.machine = [] { return MachineReading{.cpu = MachineCpu{.total = 1}}; };
  plan_.endpoints["local"] = {"theirs:1"};
  EXPECT_FALSE(run_one(leaky_lock).generator.other_cpu_share);
  double used = 0;
  plan_.private_cpu = {.of = [&used](std::string_view) { return used += 0.1; },
                       .all = [] { return 0.0; }};
  plan_.machine = [cpu = MachineCpu{}]() mutable {
    cpu.total += 1;
    return MachineReading{.cpu = cpu};
  };
  const results::Run known = run_one(leaky_lock);
  EXPECT_TRUE(known.generator.other_cpu_share);
  EXPECT_GT(known.server_cpu_seconds_per_section.value(), 0);
}

TEST_F(LiveRunTest, TheWarmUpIsInTheSeriesAndTheAuditOnly) {
  plan_.workload.warmup = 400ms;
  plan_.workload.duration = 400ms;
  plan_.workload.think = DurationDistribution::constant(1ms);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_NEAR(static_cast<double>(run.sections), 4 * 400, 8) << "a thought of 1 ms after each";
  EXPECT_NEAR(static_cast<double>(run.audit.increments), 2 * 4 * 400, 16);
  EXPECT_NEAR(static_cast<double>(run.acquire.count), static_cast<double>(run.sections), 4);
  EXPECT_NEAR(static_cast<double>(sections_of(run.series)),
              static_cast<double>(run.audit.increments), 8);
  EXPECT_DOUBLE_EQ(run.duration_seconds, 0.4);
  EXPECT_DOUBLE_EQ(run.series.back().t, 0.8);
}

TEST_F(LiveRunTest, TheOpenLoopEndsWithItsLastSection) {
  // These are due within half a second; the starts that the other clients wait for come up to 10 s
  // later.
  plan_.workload.clients = 200;
  open_loop(20);
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
  EXPECT_EQ(run.schedule_lag.count, 0U) << "a closed loop has no schedule";
}

TEST_F(LiveRunTest, TheOpenLoopHasAScheduleAndStopsWithItsDuration) {
  open_loop(200);
  plan_.workload.duration = 1s;
  const results::Run run = run_one(named("none"));
  EXPECT_EQ(run.sections, 200U) << "due at 0, 5, ..., 995 ms";
  EXPECT_EQ(run.schedule_lag.count, 200U);
  EXPECT_EQ(run.schedule_lag.max, 0);
  EXPECT_DOUBLE_EQ(run.duration_seconds, 1);
}

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
  EXPECT_EQ(run.audit.verdict, Verdict::exclusive);
}

TEST_F(LiveRunTest, ARefusalIsNoFailureThoughItSaysWhy) {
  plan_.workload.duration = 50ms;
  const results::Run run = run_one({.acquire = [](const Context& context, const AcquireRequest&) {
    context.env.wait(nullptr, context.env.now() + 1ms, {});
    return outcome(AcquireOutcome::refused, "1 of 2 replicas has the lock");
  }});
  EXPECT_GT(run.outcomes.refused, 0U);
  EXPECT_THAT(run.errors, testing::IsEmpty());
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

TEST_F(LiveRunTest, TheRateThatIsShownIsThatOfASecondHoweverShortTheInterval) {
  open_loop(200);
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

TEST_F(LiveRunTest, AStoreThatFailsRenewalsIsNoBusyGenerator) {
  for (const RenewalAnswer answer : {RenewalAnswer::renewed, RenewalAnswer::failed}) {
    const results::Run run =
        run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
          context.env.wait(nullptr, context.env.now() + 1ms, {});
          // A repeated renewal counts from its first due time.
          context.services.get<StrategyObserver>().on_renewal({.outcome = answer,
                                                               .slip = plan_.workload.ttl / 2,
                                                               .duration = 1ms,
                                                               .reason = "the store is down"});
          return grant(request);
        }});
    EXPECT_GT(run.renewal.value().slip.max, 0);
    const auto blames = testing::Contains(testing::HasSubstr("leases were renewed up to"));
    if (answer == RenewalAnswer::renewed) {
      EXPECT_THAT(run.generator.reasons, blames);
    } else {
      EXPECT_THAT(run.generator.reasons, testing::Not(blames));
    }
  }
}

}  // namespace
}  // namespace lockbench::loadgen

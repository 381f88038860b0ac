#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

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

/// A control without a lock, on virtual time; its writes look at what was read, or do not.
class UpdatesRun : public LiveRunTest {
 protected:
  results::Run run_updates(bool checked) {
    std::map<std::string, std::uint64_t> numbers;
    Behaviour behaviour;
    behaviour.acquire = [&](const Context&, const AcquireRequest& request) {
      AcquireResult read = grant(request);
      read.lease->fencing = numbers[read.lease->key];
      return read;
    };
    behaviour.release = [&](const Lease& lease) -> ReleaseResult {
      std::uint64_t& number = numbers[lease.key];
      if (checked && number != *lease.fencing) return {ReleaseOutcome::not_owner, {}};
      number = *lease.fencing + 1;
      return {ReleaseOutcome::released, {}};
    };
    Descriptor control = scripted("control", behaviour);
    control.traits.promises_exclusion = false;
    control.traits.updates = true;
    // Not constant: then the same client would always be the first.
    plan_.workload.hold = DurationDistribution::parse("exp(1ms)").value();
    end_after(100);
    return run_one(control);
  }
};

TEST_F(UpdatesRun, WorkAgainUntilNoUpdateIsLost) {
  const results::Run run = run_updates(true);
  EXPECT_EQ(run.sections, 100U);
  EXPECT_EQ(run.outcomes.acquired, 100U);
  EXPECT_EQ(run.audit.increments, 100U);
  EXPECT_EQ(run.audit.counter, 100U);
  EXPECT_EQ(run.audit.overlaps, 0U) << "to be inside together is what they are for";
  EXPECT_GT(run.audit.contended_grants, 50U);
  EXPECT_EQ(run.audit.verdict, Verdict::counted);
  EXPECT_GT(run.attempts_per_grant, 1.1);
  EXPECT_GT(run.audit.stale_writes_rejected, 10U);
  EXPECT_EQ(run.hold.count, 100U);
  EXPECT_GT(run.acquire.max, 0) << "it waited while its work was in vain";
}

TEST_F(UpdatesRun, ThatOverwriteOneAnotherAreAViolation) {
  const results::Run run = run_updates(false);
  EXPECT_EQ(run.audit.increments, 100U);
  EXPECT_EQ(run.audit.lost_updates, 100U - run.audit.counter);
  EXPECT_GT(run.audit.lost_updates, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::violated);
}

TEST_F(LiveRunTest, OnlyTooManyHoldersOfASemaphoreAreAViolation) {
  hold(1ms);
  end_after(200);
  Descriptor semaphore = leaky_lock;
  semaphore.traits.permits = true;
  for (const int permits : {4, 2, 1}) {
    plan_.workload.strategy.permits = permits;
    const results::Run run = run_one(semaphore);
    EXPECT_EQ(run.audit.overlaps > 0, permits < 4) << permits;
    EXPECT_EQ(run.audit.verdict, permits < 4 ? Verdict::violated : Verdict::exclusive) << permits;
    EXPECT_EQ(run.audit.lost_updates > 0, permits == 1) << "not judged with several permits";
  }
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

TEST_F(LiveRunTest, TheOpenLoopHasAScheduleAndStopsWithItsDuration) {
  open_loop(200);
  plan_.workload.duration = 1s;
  const results::Run run = run_one(named("none"));
  EXPECT_EQ(run.sections, 200U) << "due at 0, 5, ..., 995 ms";
  EXPECT_EQ(run.schedule_lag.count, 200U);
  EXPECT_EQ(run.schedule_lag.max, 0);
  EXPECT_DOUBLE_EQ(run.duration_seconds, 1);
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

#include "loadgen/run/fault_player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "tests/support/eventually.h"
#include "tests/unit/loadgen/fault_player_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::kNotTheLoadAskedFor;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(FaultPlayerTest, MakesAFaultAndHealsItAndTellsWhatItDid) {
  strike("store-freeze@300ms+300ms");
  plan_.workload.duration = 2s;
  const results::Run run = run_struck();
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-freeze", "heal store-freeze"));
  ASSERT_EQ(run.faults.size(), 1U);
  const results::FaultMark& mark = run.faults[0];
  EXPECT_EQ(mark.fault, "store-freeze");
  EXPECT_GE(mark.at_seconds, 0.3);
  ASSERT_TRUE(mark.healed_seconds);
  EXPECT_GE(*mark.healed_seconds, 0.6);
  EXPECT_LT(mark.lowest_share, 0.2);
  ASSERT_TRUE(mark.recovery_seconds);
  EXPECT_GE(*mark.recovery_seconds, 0);
  EXPECT_THAT(run.errors, IsEmpty());
  EXPECT_THAT(watcher_.warnings, IsEmpty());
}

TEST_F(FaultPlayerTest, TimeRunsFromTheMeasuredPartAndMarksFromTheLoadsBeginning) {
  plan_.workload.warmup = 200ms;
  end_with(target_.on_heal);
  strike("delay:1ms@100ms+100ms");
  const results::Run run = run_struck();
  ASSERT_EQ(run.faults.size(), 1U);
  EXPECT_EQ(run.faults[0].fault, "delay:1ms");
  EXPECT_GE(run.faults[0].at_seconds, 0.3);
}

TEST_F(FaultPlayerTest, TheWatcherSeesItComeAndGo) {
  strike("partition@100ms+100ms");
  end_with(target_.on_heal);
  run_struck();
  EXPECT_THAT(faults_seen_.seen(),
              ElementsAre("begins", "partition on", "partition off", "ends with faults"));
}

TEST_F(FaultPlayerTest, SeveralAreMadeOneAfterTheOther) {
  strike("store-freeze@100ms+100ms");
  strike("delay:1ms@300ms+100ms");
  plan_.workload.duration = 60s;
  int healed = 0;
  target_.on_heal = [&] {
    if (++healed == 2) stop_.request_stop();
  };
  const results::Run run = run_struck();
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-freeze", "heal store-freeze",
                                           "lock delay:1ms", "heal delay:1ms"));
  ASSERT_EQ(run.faults.size(), 2U);
  EXPECT_GT(run.faults[1].at_seconds, run.faults[0].healed_seconds.value());
}

TEST_F(FaultPlayerTest, WhatLastsUntilTheEndIsHealedThen) {
  strike("store-kill@300ms");
  const results::Run run = run_struck();
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-kill", "heal store-kill"));
  ASSERT_EQ(run.faults.size(), 1U);
  EXPECT_EQ(run.faults[0].healed_seconds, std::nullopt);
  EXPECT_EQ(run.faults[0].recovery_seconds, std::nullopt);
  EXPECT_THAT(faults_seen_.seen(), Contains("store-kill off"));
}

TEST_F(FaultPlayerTest, WhatDoesNoHarmIsOvercomeAtOnce) {
  std::atomic<bool> harmless{false};
  target_.on_inject = [&] {
    target_.struck = false;
    harmless = true;
  };
  // In a closed loop, and faster than before.
  plan_.workload.rate.reset();
  plan_.workload.think = DurationDistribution::constant(100us);
  plan_.workload.duration = 2s;
  strike("node-freeze@500ms");
  const results::Run run =
      run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
        if (!harmless) context.env.wait(nullptr, context.env.now() + 2ms, request.stop);
        return grant(request);
      }});
  ASSERT_EQ(run.faults.size(), 1U);
  ASSERT_TRUE(run.faults[0].recovery_seconds);
  EXPECT_GE(*run.faults[0].recovery_seconds, 0) << "never before the fault";
}

TEST_F(FaultPlayerTest, AnExceptionOfTheTargetIsAFailure) {
  plan_.workload.duration = 60s;
  target_.on_inject = [this] {
    stop_.request_stop();
    throw std::runtime_error("no more threads");
  };
  strike("store-kill@50ms+50ms");
  run_struck();
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-kill", "heal store-kill"));
  EXPECT_THAT(watcher_.warnings, ElementsAre(HasSubstr("no more threads")));
}

TEST_F(FaultPlayerTest, AStopInMidFaultHealsAndKeepsTheMark) {
  strike("store-freeze@50ms+30s");
  plan_.workload.duration = 60s;
  target_.on_inject = [this] { stop_.request_stop(); };
  const RunReport report = run({&lock_});
  EXPECT_TRUE(report.interrupted);
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-freeze", "heal store-freeze"));
  ASSERT_EQ(report.runs.size(), 1U);
  ASSERT_EQ(report.runs[0].faults.size(), 1U);
  EXPECT_EQ(report.runs[0].faults[0].healed_seconds, std::nullopt);
  EXPECT_THAT(watcher_.warnings, IsEmpty());
}

TEST_F(FaultPlayerTest, ARunWithNothingBeforeTheFaultHasNoShare) {
  target_.struck = true;
  strike("store-freeze@0s");
  end_with(target_.on_inject);
  const results::Run run = run_struck();
  ASSERT_EQ(run.faults.size(), 1U);
  EXPECT_TRUE(std::isnan(run.faults[0].lowest_share));
  EXPECT_EQ(run.faults[0].recovery_seconds, std::nullopt);
}

TEST_F(FaultPlayerTest, WhatCannotBeMadeIsHealedAndSaid) {
  target_.refuses = true;
  strike("store-kill@50ms+50ms");
  end_with(target_.on_inject);
  const results::Run run = run_struck();
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-kill", "heal store-kill"));
  EXPECT_THAT(run.faults, IsEmpty());
  EXPECT_THAT(run.errors, ElementsAre(HasSubstr("fault store-kill@50ms+50ms: it would not die")));
  EXPECT_THAT(watcher_.warnings, ElementsAre(HasSubstr("it would not die")));
}

TEST_F(FaultPlayerTest, WhatCannotBeHealedIsSaid) {
  target_.cannot_heal = true;
  strike("store-kill@50ms+50ms");
  end_with(target_.on_heal);
  const results::Run run = run_struck();
  EXPECT_EQ(run.faults.size(), 1U);
  EXPECT_THAT(watcher_.warnings, ElementsAre(HasSubstr("it would not start")));
}

TEST_F(FaultPlayerTest, WithoutAThreadItIsHealedInTimeAllTheSame) {
  real_time_ = true;
  pthread_attr_t usual{};
  pthread_getattr_default_np(&usual);
  target_.on_inject = [] {
    pthread_attr_t none{};
    pthread_attr_init(&none);
    // More than there are addresses: no thread can be had.
    pthread_attr_setstacksize(&none, std::size_t{1} << 60);
    EXPECT_EQ(pthread_setattr_default_np(&none), 0);
    EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  };
  target_.on_heal = [&] {
    pthread_setattr_default_np(&usual);
    stop_.request_stop();
  };
  strike("store-freeze@300ms+100ms");
  plan_.workload.duration = test::kPatience;
  EXPECT_LT(run_struck().duration_seconds, seconds(test::kPatience))
      << "ended by the healing, not that by the end";
}

TEST_F(FaultPlayerTest, ThatSectionsBeginLateIsTheFaultsDoing) {
  strike("store-freeze@100ms+300ms");
  const results::Run run = run_struck();
  EXPECT_GT(run.schedule_lag.max, 0.1);
  EXPECT_THAT(run.generator.reasons, Not(Contains(HasSubstr(std::string(kNotTheLoadAskedFor)))));
}

TEST_F(FaultPlayerTest, ThatTheyDidSoBeforeItIsNot) {
  hold(10ms);
  strike("store-freeze@900ms+10ms");
  const results::Run run = run_struck();
  EXPECT_THAT(run.generator.reasons, Contains(HasSubstr(std::string(kNotTheLoadAskedFor))));
}

TEST_F(FaultPlayerTest, AFaultThatCouldNotBeMadeExcusesNoLateSections) {
  hold(10ms);
  target_.refuses = true;
  strike("store-freeze@0s");
  const results::Run run = run_struck();
  EXPECT_THAT(run.generator.reasons, Contains(HasSubstr(std::string(kNotTheLoadAskedFor))));
}

TEST_F(FaultPlayerTest, AFaultThatTheRunDidNotLiveToSeeIsNotPassedOver) {
  strike("store-kill@50s+1s");
  end_after(20);
  const results::Run run = run_struck();
  EXPECT_THAT(run.faults, IsEmpty());
  EXPECT_THAT(target_.calls(), IsEmpty());
  EXPECT_THAT(watcher_.warnings,
              ElementsAre(HasSubstr("store-kill@50s+1s: the run of lock was over before")));
}

}  // namespace
}  // namespace lockbench::loadgen

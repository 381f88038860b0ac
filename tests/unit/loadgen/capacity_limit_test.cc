#include "loadgen/experiments/capacity_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loadgen/record/certificate.h"
#include "tests/unit/loadgen/around.h"

namespace lockbench::loadgen {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// A run that nothing is the matter with: 100 sections of 2 ms a second.
results::Run calm_run() {
  results::Run run;
  run.sections_per_second = 100;
  run.outcomes.acquired = 1000;
  run.acquire = run.acquire_service = around(100e-6);
  run.hold = around(0.002);
  run.turnaround = around(200e-6, 50);
  run.release = around(100e-6);
  run.server_cpu_seconds_per_section = 20e-6;
  run.generator.cpu_share = 0.1;
  return run;
}

results::CapacityStep judged(const results::Run& run, const char* objective = "acquire.p99<1ms") {
  const auto threshold = results::parse_threshold(objective);
  EXPECT_TRUE(threshold.has_value());
  return judge_step(run, "climb", 100, {&*threshold, 1});
}

TEST(CapacityStep, KeepsTheObjective) {
  const results::CapacityStep step = judged(calm_run());
  EXPECT_TRUE(step.met);
  EXPECT_TRUE(step.valid);
  EXPECT_THAT(step.reason, IsEmpty());
  EXPECT_DOUBLE_EQ(step.server_cpu_share, 0.002);
}

TEST(CapacityStep, MissesItAndSaysBywhat) {
  results::Run run = calm_run();
  run.acquire.p99 = 0.005;
  const results::CapacityStep step = judged(run);
  EXPECT_FALSE(step.met);
  EXPECT_THAT(step.reason, HasSubstr("acquire.p99<1ms"));
}

TEST(CapacityStep, AGrowingBacklogIsNotServed) {
  results::Run run = calm_run();
  run.outcomes.abandoned = 20;
  EXPECT_TRUE(judged(run).met) << "what is under way at the end is none";
  run.outcomes.abandoned = 40;
  EXPECT_FALSE(judged(run).met);
  EXPECT_THAT(judged(run).reason, HasSubstr("a backlog grew: 40 of 1040"));
}

TEST(CapacityStep, WhatWasGivenUpDoesNotFlatter) {
  results::Run run = calm_run();
  run.outcomes.timed_out = 1;
  EXPECT_TRUE(judged(run).met);
  run.outcomes.timed_out = 5;
  EXPECT_FALSE(judged(run).met);
  run = calm_run();
  run.outcomes.acquired = 0;
  EXPECT_FALSE(judged(run, "acquire.p99>=0").met);
}

TEST(CapacityStep, TheGeneratorsFaultMakesItInvalidButLateSectionsDoNot) {
  results::Run run = calm_run();
  run.generator.valid = false;
  run.generator.reasons = {std::string(kNotTheLoadAskedFor) + ": late"};
  EXPECT_TRUE(judged(run).valid);
  run.generator.reasons.emplace_back("idle clients started late");
  EXPECT_FALSE(judged(run).valid);
  EXPECT_THAT(judged(run).reason, HasSubstr("idle clients started late"));
}

TEST(CapacityStep, FewSamplesAreNamed) {
  results::Run run = calm_run();
  run.acquire.count = 30;
  EXPECT_THAT(judged(run).reason, HasSubstr("only 30 samples"));
}

Limit limit_of(const results::Run& run, std::uint64_t clients = 32, bool valid = true) {
  return name_limit({.run = run, .clients = clients, .cores = 2, .step_valid = valid});
}

TEST(CapacityLimit, TheLockWhereItIsNearlyAlwaysTaken) {
  results::Run run = calm_run();
  run.sections_per_second = 430;
  const Limit limit = limit_of(run);
  EXPECT_EQ(limit.name, "lock");
  EXPECT_THAT(limit.reason,
              HasSubstr("with hold 2 ms and handoff 200 µs, at most 455 sections/s are possible"));
}

TEST(CapacityLimit, TheLockOfOneOfManyKeysTakesItsShare) {
  results::Run run = calm_run();
  run.sections_per_second = 430;
  EXPECT_EQ(name_limit({.run = run, .clients = 32, .busiest_key_share = 0.25, .cores = 2}).name,
            "unknown");
  run.sections_per_second = 1720;
  const Limit limit =
      name_limit({.run = run, .clients = 32, .busiest_key_share = 0.25, .cores = 2});
  EXPECT_EQ(limit.name, "lock");
  EXPECT_THAT(limit.reason, HasSubstr("1.82k sections/s"));
}

TEST(CapacityLimit, AnObjectiveWithoutRoomForWaitingIsTheLocksToo) {
  results::Run run = calm_run();
  run.acquire.p99 = 0.004;
  const Limit limit = limit_of(run);
  EXPECT_EQ(limit.name, "lock");
  EXPECT_THAT(limit.reason, HasSubstr("waiting for one other client takes 2.2 ms"));
}

TEST(CapacityLimit, TheStoreWhereItsOneCoreIsBusy) {
  results::Run run = calm_run();
  run.hold = around(0);
  run.turnaround = {};
  run.release = around(1e-6);
  run.sections_per_second = 45'000;
  EXPECT_EQ(limit_of(run, 64).name, "store");
  EXPECT_EQ(name_limit({.run = run, .clients = 64, .store_cores = 2, .cores = 16}).name, "unknown")
      << "half of two";
}

TEST(CapacityLimit, TheStoreWhereItUsesMostOfAFullMachine) {
  results::Run run = calm_run();
  run.hold = around(0);
  run.handoff = {};
  run.release = around(1e-6);
  run.sections_per_second = 1000;
  run.server_cpu_seconds_per_section = 1.3e-3;
  run.generator.cpu_share = 0.3;
  const Limit limit = name_limit({.run = run, .clients = 64, .store_cores = 2, .cores = 2});
  EXPECT_EQ(limit.name, "store");
  EXPECT_THAT(limit.reason, HasSubstr("65 % for the store and 30 % for the generator"));
  run.server_cpu_seconds_per_section = 0.8e-3;
  run.generator.cpu_share = 0.55;
  EXPECT_EQ(name_limit({.run = run, .clients = 64, .store_cores = 2, .cores = 2}).name,
            "generator");
}

TEST(CapacityLimit, TheGeneratorMakesTheAnswerNoneOfTheLocks) {
  results::Run run = calm_run();
  run.sections_per_second = 430;
  run.generator.reasons = {"the load generator used 95 % of the CPU"};
  const Limit limit = limit_of(run, 32, false);
  EXPECT_EQ(limit.name, "generator");
  EXPECT_THAT(limit.reason, HasSubstr("used 95 % of the CPU"));
  const Limit shaken = name_limit({.run = run,
                                   .clients = 32,
                                   .cores = 2,
                                   .steps = 20,
                                   .invalid_steps = 12,
                                   .invalid_reason = "idle clients started late"});
  EXPECT_EQ(shaken.name, "generator");
  EXPECT_THAT(shaken.reason, HasSubstr("12 of 20 steps were not valid"));
  EXPECT_EQ(
      name_limit({.run = run, .clients = 32, .cores = 2, .steps = 20, .invalid_steps = 2}).name,
      "lock");
  results::Run full = calm_run();
  full.generator.cpu_share = 0.95;
  EXPECT_EQ(limit_of(full).name, "generator") << "the machine is full";
}

TEST(CapacityLimit, TooFewClientsByLittlesLaw) {
  results::Run run = calm_run();
  run.acquire_service = around(0.0075);
  run.turnaround = {};
  EXPECT_EQ(limit_of(run, 1).name, "clients");
  EXPECT_THAT(limit_of(run, 1).reason, HasSubstr("of 1 clients were busy"));
  EXPECT_NE(limit_of(run, 2).name, "clients");
}

TEST(CapacityLimit, ALockThatExcludesNobodyIsNone) {
  results::Run run = calm_run();
  run.sections_per_second = 430;
  EXPECT_EQ(name_limit({.run = run, .clients = 32, .excludes = false, .cores = 2}).name, "unknown");
}

}  // namespace
}  // namespace lockbench::loadgen

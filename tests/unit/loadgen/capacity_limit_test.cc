#include "loadgen/experiments/capacity_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/loadgen/around.h"

namespace lockbench::loadgen {
namespace {

using testing::HasSubstr;

/// A run that nothing is the matter with: 100 sections of 2 ms a second.
results::Run calm_run() {
  results::Run run;
  run.sections_per_second = 100;
  run.outcomes.acquired = 1000;
  run.acquire = run.acquire_service = around(100e-6);
  run.hold = around(0.002);
  run.turnaround = around(200e-6, 50);
  run.sections = run.awaited_releases = 1000;
  run.release = around(100e-6);
  run.server_cpu_seconds_per_section = 20e-6;
  run.generator.cpu_share = 0.1;
  return run;
}

Limit limit_of(const results::Run& run, std::uint64_t clients = 32, bool valid = true) {
  return name_limit({.run = run, .clients = clients, .cores = 2, .step_valid = valid});
}

TEST(CapacityLimit, TheLockWhereItIsNearlyAlwaysTaken) {
  results::Run run = calm_run();
  run.sections_per_second = 430;
  const Limit limit = limit_of(run);
  EXPECT_EQ(limit.name, "lock");
  EXPECT_THAT(
      limit.reason,
      HasSubstr("with hold 2 ms, and handoff 200 µs after 100 % of the releases, at most 455 "
                "sections/s are possible"));
}

TEST(CapacityLimit, TheLockOfOneOfManyKeysTakesItsShare) {
  results::Run run = calm_run();
  run.sections_per_second = 430;
  EXPECT_EQ(name_limit({.run = run, .clients = 32, .lock = {.busiest_key = 0.25}, .cores = 2}).name,
            "unknown");
  run.sections_per_second = 1720;
  const Limit limit =
      name_limit({.run = run, .clients = 32, .lock = {.busiest_key = 0.25}, .cores = 2});
  EXPECT_EQ(limit.name, "lock");
  EXPECT_THAT(limit.reason, HasSubstr("1.82k sections/s"));
}

TEST(CapacityLimit, AnObjectiveWithoutRoomForWaitingIsTheLocksToo) {
  results::Run run = calm_run();
  run.acquire.p99 = 0.0013;
  const Limit limit = limit_of(run);
  EXPECT_EQ(limit.name, "lock");
  EXPECT_THAT(limit.reason, HasSubstr("waiting for one other client takes 1.2 ms on average"));
  run.acquire.p99 = 0.0011;
  EXPECT_EQ(limit_of(run).name, "unknown");
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

TEST(CapacityLimit, AStoreThatDoesNotTellItsCpuWhereOthersFillTheMachine) {
  results::Run run = calm_run();
  run.server_cpu_seconds_per_section.reset();
  run.generator.cpu_share = 0.3;
  run.generator.machine_cpu_share = 0.97;
  const LimitEvidence evidence{
      .run = run, .clients = 32, .store = "zookeeper", .store_cores = 2, .cores = 2};
  EXPECT_EQ(name_limit(evidence).name, "store");
  EXPECT_THAT(name_limit(evidence).reason,
              HasSubstr("67 % for other programs, zookeeper perhaps among them"));
  run.generator.machine_cpu_share = 0.4;
  EXPECT_THAT(name_limit(evidence).reason, HasSubstr("the CPU of zookeeper is unknown"));
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

TEST(CapacityLimit, AFullThreadOfTheGeneratorIsTheLimitIfNothingElseIs) {
  results::Run run = calm_run();
  run.generator.busiest_thread_share = 0.97;
  const Limit limit = limit_of(run);
  EXPECT_EQ(limit.name, "generator");
  EXPECT_THAT(limit.reason, HasSubstr("busy 97 % of the time"));
  run.generator.busiest_thread_share = 0.6;
  EXPECT_NE(limit_of(run).name, "generator");
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
  EXPECT_EQ(name_limit({.run = run, .clients = 32, .lock = {.excludes = false}, .cores = 2}).name,
            "unknown");
}

}  // namespace
}  // namespace lockbench::loadgen

#include "loadgen/experiments/capacity_experiment.h"

#include <gtest/gtest.h>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

/// Until the first load has been measured.
CapacityMeasured measured_briefly(const Descriptor& strategy) {
  CapacityPlan plan;
  plan.strategy = &strategy;
  plan.run.run_id = "brief";
  plan.run.workload.duration = 100ms;
  plan.run.workload.clients = 4;
  plan.run.workload.warmup = {};
  plan.run.workload.hold = DurationDistribution::constant(1ms);
  plan.run.workload.contended_grants = 0;
  std::stop_source stop;
  return measure_capacity(
      plan,
      [&](const std::string& line) {
        if (line.find("closed loop, ") != std::string::npos) stop.request_stop();
      },
      stop.get_token());
}

TEST(CapacityExperiment, RemembersThatALockLetTwoIn) {
  EXPECT_EQ(measured_briefly(leaky_lock).capacity.violated, true);
}

TEST(CapacityExperiment, KnowsThatAControlLetsAllIn) {
  EXPECT_EQ(measured_briefly(*find_strategy("none")).capacity.violated, true);
}

TEST(CapacityExperiment, KnowsNothingOfALockThatNobodyGot) {
  const Behaviour refuses{.acquire = [](const Context&, const AcquireRequest&) {
    return outcome(AcquireOutcome::refused);
  }};
  EXPECT_EQ(measured_briefly(scripted("refuses", refuses)).capacity.violated, std::nullopt);
}

TEST(CapacityExperiment, FindsNothingBrokenWhereOneWasLetInAtATime) {
  EXPECT_EQ(measured_briefly(*find_strategy("local-mutex")).capacity.violated, false);
}

}  // namespace
}  // namespace lockbench::loadgen

#include "loadgen/experiments/capacity_experiment.h"

#include <gmock/gmock.h>
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
        if (line.find("closed loop: ") != std::string::npos) stop.request_stop();
      },
      stop.get_token());
}

TEST(CapacityExperiment, RemembersWhetherALockLetTwoIn) {
  EXPECT_EQ(measured_briefly(leaky_lock).capacity.violated, true);
  EXPECT_EQ(measured_briefly(*find_strategy("none")).capacity.violated, true) << "a control";
  EXPECT_EQ(measured_briefly(*find_strategy("local-mutex")).capacity.violated, false);
  const Behaviour refuses{.acquire = [](const Context&, const AcquireRequest&) {
    return outcome(AcquireOutcome::refused);
  }};
  EXPECT_EQ(measured_briefly(scripted("refuses", refuses)).capacity.violated, std::nullopt);
}

TEST(CapacityExperiment, TakesTheTimeOfItsStepsWhereHoldsAreLong) {
  CapacityPlan plan;
  plan.objective = {results::parse_threshold("acquire.p50<20s").value()};
  plan.run.workload.hold = DurationDistribution::constant(2s);
  // Five steps, of 20 holds each after a warm-up of as many.
  plan.time = 399s;
  EXPECT_THAT(search_too_short(plan), testing::HasSubstr("5 steps of 40 holds or more"));
  plan.time = 401s;
  EXPECT_EQ(search_too_short(plan), "");
  EXPECT_GE(default_search_time(plan.run.workload, plan.objective), 401s);
}

}  // namespace
}  // namespace lockbench::loadgen

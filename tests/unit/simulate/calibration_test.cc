#include "simulate/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/simulate/plans.h"

namespace lockbench::simulate {
namespace {

using testing::HasSubstr;

Plan lonely(const char* strategy, const Calibration& machine) {
  Plan plan = plan_for(strategy);
  plan.workload.clients = 1;
  plan.workload.hold = plan.workload.think = {};
  plan.workload.warmup = {};
  plan.workload.duration = 5s;
  plan.calibration = machine;
  return plan;
}

/// What a run under the load `alone` writes on that machine.
results::Result measured_on(const char* strategy, const Calibration& machine, Duration rtt = {}) {
  Plan plan = lonely(strategy, machine);
  plan.workload.rtt = rtt;
  const Outcome outcome = test::must(simulate(plan, 3));
  results::Result result;
  results::Run& run = result.runs.emplace_back();
  run.strategy = strategy;
  run.load = {.name = "alone",
              .clients = 1,
              .hold_seconds = 0,
              .rate = std::nullopt,
              .rtt_seconds = seconds(rtt)};
  run.sections = outcome.sections;
  run.acquire = loadgen::to_distribution(outcome.acquired);
  run.release = loadgen::to_distribution(outcome.released);
  run.server_cpu_seconds_per_section =
      seconds(outcome.servers_worked) / static_cast<double>(outcome.sections);
  return result;
}

double at(const loadgen::HistogramSnapshot& times, double share) {
  return seconds(times.percentile(share));
}

const Calibration machine{.per_request = 20us,
                          .delay = DurationDistribution::lognormal(60us, 150us)};

class CalibrationOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Some, CalibrationOf,
                         testing::Values("redis-set-nx-lua", "memcached-add-cas"));

TEST_P(CalibrationOf, FindsTheTimesOfTheMachineThatWasMeasured) {
  const Plan plan = plan_for(GetParam());
  const Calibration found = test::must(calibrate(plan, measured_on(GetParam(), machine)));
  EXPECT_NEAR(seconds(found.per_request), 20e-6, 1e-6);
  const Outcome real = test::must(simulate(lonely(GetParam(), machine), 4));
  const Outcome predicted = test::must(simulate(lonely(GetParam(), found), 4));
  EXPECT_NEAR(at(predicted.acquired, 0.5) / at(real.acquired, 0.5), 1, 0.1);
  EXPECT_NEAR(at(predicted.acquired, 0.99) / at(real.acquired, 0.99), 1, 0.1);
  EXPECT_NEAR(at(predicted.released, 0.5) / at(real.released, 0.5), 1, 0.1);
  const auto ratio = static_cast<double>(predicted.sections) / static_cast<double>(real.sections);
  EXPECT_NEAR(ratio, 1, 0.1);
}

TEST(Calibration, TakesTheRunsWithTheRoundTripOfThePlanOrElseThoseWithoutOne) {
  constexpr const char* kStrategy = "redis-set-nx-lua";
  const Calibration slow{.per_request = 20us,
                         .delay = DurationDistribution::lognormal(300us, 600us)};
  results::Result both = measured_on(kStrategy, machine);
  both.runs.push_back(measured_on(kStrategy, slow, 1ms).runs.front());
  Plan plan = plan_for(kStrategy);
  plan.workload.rtt = 1ms;
  EXPECT_GT(test::must(calibrate(plan, both)).delay.mean(), 200us);
  both.runs.pop_back();
  EXPECT_LT(test::must(calibrate(plan, both)).delay.mean(), 100us);
}

TEST(Calibration, SaysWhatTheFileLacks) {
  results::Result result = measured_on("redis-fenced", machine);
  const auto other = calibrate(plan_for("redis-set-nx-lua"), result);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error(), HasSubstr("no run of it alone"));
  result.runs.front().acquire = {};
  const auto empty = calibrate(plan_for("redis-fenced"), result);
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error(), HasSubstr("granted too little"));
}

}  // namespace
}  // namespace lockbench::simulate

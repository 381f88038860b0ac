#include "loadgen/experiments/capacity_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loadgen/record/histogram.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using results::Decision;
using testing::HasSubstr;
using testing::IsEmpty;

/// 1000 sections of 2 ms in 10 s, of which so many waited for 50 ms and the others for 1 ms.
results::Run run_with(int long_waits) {
  HistogramSnapshot waits, holds;
  for (int i = 0; i < 1000; ++i) {
    waits.record(i < long_waits ? 50ms : 1ms);
    holds.record(2ms);
  }
  results::Run run;
  run.duration_seconds = 10;
  run.sections = run.outcomes.acquired = 1000;
  run.sections_per_second = 100;
  run.acquire = to_distribution(waits);
  run.hold = to_distribution(holds);
  run.server_cpu_seconds_per_section = 20e-6;
  run.generator.cpu_share = 0.1;
  return run;
}

std::vector<results::Threshold> objective(const char* text = "acquire.p99<20ms") {
  return {results::parse_threshold(text).value()};
}

results::CapacityStep judged(const results::Run& run, const char* text = "acquire.p99<20ms") {
  return judge_step(run, "search", 100, objective(text));
}

TEST(CapacityStep, KeepsTheObjective) {
  const results::CapacityStep step = judged(run_with(5));
  EXPECT_TRUE(step.met);
  EXPECT_TRUE(step.valid);
  EXPECT_THAT(step.reason, IsEmpty());
  EXPECT_DOUBLE_EQ(step.server_cpu_share, 0.002);
}

TEST(CapacityStep, MissesItAndSaysByWhat) {
  EXPECT_FALSE(judged(run_with(20)).met);
  EXPECT_THAT(judged(run_with(20)).reason, HasSubstr("acquire.p99 is 5"));
}

TEST(CapacityStep, WhatWasGivenUpDoesNotFlatter) {
  results::Run run = run_with(0);
  run.outcomes.failed = 10;
  EXPECT_TRUE(judged(run).met);
  run.outcomes.failed = 11;
  EXPECT_FALSE(judged(run).met);
  EXPECT_THAT(judged(run).reason, HasSubstr("11 of 1011 sections timed out"));
  run = run_with(0);
  run.outcomes.acquired = 0;
  EXPECT_FALSE(judged(run, "acquire.p99>=0").met);
}

TEST(CapacityStep, TheGeneratorsFaultMakesItInvalidButLateSectionsDoNot) {
  results::Run run = run_with(0);
  run.generator.reasons = {std::string(results::kNotTheLoadAskedFor) + ": late"};
  EXPECT_TRUE(judged(run).valid);
  run.generator.reasons.emplace_back("idle clients started late");
  EXPECT_FALSE(judged(run).valid);
  EXPECT_THAT(judged(run).reason, HasSubstr("idle clients started late"));
}

RateRuling ruling(const std::vector<results::Run>& runs, double rate = 100) {
  return judge_rate(rate, runs, objective(), {});
}

TEST(CapacityRate, IsDecidedByAllStepsTogether) {
  std::vector<results::Run> runs(6, run_with(2));
  const RateRuling kept = ruling(runs);
  EXPECT_EQ(kept.decision, Decision::kept);
  EXPECT_EQ(kept.rate.samples, 6000U);
  EXPECT_EQ(kept.rate.missed_steps, 0U);
  EXPECT_THAT(kept.rate.reason, HasSubstr("acquire.p99 is 1.01 ms to 1.01 ms"));
  // A late miss counts as much as an early one.
  runs.push_back(run_with(300));
  EXPECT_EQ(ruling(runs).decision, Decision::open);
  EXPECT_EQ(ruling(runs).rate.missed_steps, 1U);
  runs.assign(6, run_with(30));
  EXPECT_EQ(ruling(runs).decision, Decision::missed);
}

TEST(CapacityRate, OfDisturbedStepsIsOnlyEverKept) {
  const auto disturbed = [](int long_waits) {
    std::vector<results::Run> runs(6, run_with(long_waits));
    for (results::Run& run : runs) run.generator.reasons = {"steal"};
    return ruling(runs);
  };
  EXPECT_EQ(disturbed(2).decision, Decision::kept);
  EXPECT_EQ(disturbed(30).decision, Decision::open);
  EXPECT_EQ(disturbed(30).rate.invalid_steps, 6U);
  EXPECT_EQ(disturbed(30).rate.samples, 6000U);
  EXPECT_THAT(disturbed(30).rate.reason, HasSubstr("6 of 6 steps were disturbed"));
  EXPECT_TRUE(disturbed(30).hindered) << "so that the search goes on elsewhere";
  EXPECT_FALSE(disturbed(10).hindered);
}

TEST(CapacityRate, IsMissedWhereTheLoadIsNotServed) {
  std::vector<results::Run> runs(6, run_with(0));
  for (results::Run& run : runs) run.outcomes.abandoned = 100;
  EXPECT_EQ(ruling(runs).decision, Decision::missed);
  EXPECT_THAT(ruling(runs).rate.reason, HasSubstr("600 of 6600 sections"));
  for (results::Run& run : runs) run.outcomes = {.acquired = 1000, .failed = 100};
  EXPECT_EQ(ruling(runs).decision, Decision::open) << "perhaps a server is gone";
}

TEST(CapacityRate, IsNotKeptBeyondItsOwnCeiling) {
  const std::vector<results::Run> runs(6, run_with(0));
  EXPECT_EQ(ruling(runs, 480).decision, Decision::kept);
  const RateRuling beyond = ruling(runs, 505);
  EXPECT_EQ(beyond.decision, Decision::missed);
  EXPECT_THAT(beyond.rate.reason, HasSubstr("no more than 5"));
  EXPECT_EQ(judge_rate(505, runs, objective(), {.excludes = false}).decision, Decision::kept);
}

TEST(CapacityRate, SaysForWhichShareOfTheTimeTheLockWasTaken) {
  std::vector<results::Run> runs(5, run_with(0));
  EXPECT_NEAR(ruling(runs).rate.rho, 0.2, 0.002) << "100 holds of 2 ms a second";
  HistogramSnapshot turnarounds;
  turnarounds.record(3ms);
  for (results::Run& run : runs) {
    run.turnaround = to_distribution(turnarounds);
    run.awaited_releases = 500;
  }
  EXPECT_NEAR(ruling(runs).rate.rho, 0.35, 0.004) << "and 50 handoffs of 3 ms";
  for (results::Run& run : runs) run.duration_seconds = 1;
  EXPECT_EQ(ruling(runs).rate.rho, 1);
}

TEST(ServiceTimes, AreMeansOverAllRuns) {
  HistogramSnapshot turnarounds;
  for (int i = 0; i < 4; ++i) turnarounds.record(6ms);
  results::Run run = run_with(0);
  run.turnaround = to_distribution(turnarounds);
  run.awaited_releases = 250;
  const std::vector<results::Run> runs{run, run_with(0)};
  const ServiceTimes service = service_times(runs);
  EXPECT_NEAR(service.turnaround, 6e-3, 6e-5) << "of those that there are";
  EXPECT_DOUBLE_EQ(service.awaited_share, 0.125);
}

}  // namespace
}  // namespace lockbench::loadgen

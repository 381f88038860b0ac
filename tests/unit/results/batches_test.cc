#include "results/stats/batches.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace lockbench::results {
namespace {

using Runs = std::vector<Run>;

/// So many samples of 1 ms and of 50 ms; samples that were cut off at 10 ms.
Distribution batch(std::uint64_t brief, std::uint64_t lasting, std::uint64_t cut = 0) {
  Distribution made;
  made.count = brief + lasting;
  made.buckets = {{0.001, brief}, {0.050, lasting}};
  if (cut > 0) made.censored = {.count = cut, .buckets = {{0.010, cut}}};
  return made;
}

Runs runs_of(std::size_t number, const Distribution& acquire) {
  Run run;
  run.acquire = acquire;
  run.outcomes.acquired = acquire.count;
  run.sections = acquire.count;
  return Runs(number, run);
}

Ruling ruling(const Runs& runs, const char* objective = "acquire.p99<20ms") {
  std::vector<const Run*> all;
  for (const auto& run : runs) all.push_back(&run);
  return judge(parse_threshold(objective).value(), all);
}

Decision decision(const Runs& runs, const char* objective = "acquire.p99<20ms") {
  return ruling(runs, objective).decision;
}

TEST(Batches, DecideByAnIntervalOnOneSideOfTheBound) {
  EXPECT_EQ(decision(runs_of(10, batch(498, 2))), Decision::kept);
  EXPECT_EQ(decision(runs_of(10, batch(495, 5))), Decision::open) << "1 % is the bound itself";
  EXPECT_EQ(decision(runs_of(10, batch(490, 10))), Decision::missed);
  const Ruling kept = ruling(runs_of(10, batch(498, 2)));
  EXPECT_EQ(kept.samples, 5000);
  EXPECT_DOUBLE_EQ(kept.figure.high, 0.001);
}

TEST(Batches, NeedTenSamplesBeyondThePercentile) {
  EXPECT_EQ(samples_needed("acquire.p50"), 20);
  EXPECT_EQ(samples_needed("acquire.p99"), 1000);
  EXPECT_EQ(samples_needed("release.p999"), 10'000);
  EXPECT_EQ(samples_needed("acquire.mean"), 0);
  EXPECT_EQ(decision(runs_of(9, batch(100, 0))), Decision::open);
  EXPECT_EQ(decision(runs_of(10, batch(100, 0))), Decision::kept);
  EXPECT_EQ(decision(runs_of(9, batch(100, 0)), "acquire.p90<20ms"), Decision::kept);
  EXPECT_EQ(decision(runs_of(9, batch(9, 1))), Decision::open) << "nine samples beyond the bound";
  EXPECT_EQ(decision(runs_of(10, batch(9, 1))), Decision::missed);
}

TEST(Batches, NeedFiveRuns) {
  EXPECT_EQ(decision(runs_of(4, batch(5000, 0))), Decision::open);
  EXPECT_EQ(decision(runs_of(4, batch(0, 5000))), Decision::open);
  EXPECT_EQ(decision(runs_of(4, batch(5000, 0)), "acquire.max<20ms"), Decision::open);
  EXPECT_EQ(decision(runs_of(5, batch(5000, 0))), Decision::kept);
}

TEST(Batches, WhatARunDidNotMeasureIsNeitherKeptNorMissed) {
  Runs runs = runs_of(5, batch(5000, 0));
  EXPECT_EQ(decision(runs, "handoff.max<5ms"), Decision::open);
  for (auto& run : runs) run.handoff = {.count = 1, .max = 0.001};
  EXPECT_EQ(decision(runs, "handoff.max<5ms"), Decision::kept);
  runs[2].handoff = {};
  EXPECT_EQ(decision(runs, "handoff.max<5ms"), Decision::open);
  runs[1].handoff.max = 1;
  EXPECT_EQ(decision(runs, "handoff.max<5ms"), Decision::missed);
}

TEST(Batches, TrustLongWaitsThatComeTogetherLess) {
  Runs runs = runs_of(10, batch(498, 2));
  EXPECT_EQ(decision(runs), Decision::kept);
  // The same twenty in one run.
  for (auto& run : runs) run.acquire = batch(500, 0);
  runs[3].acquire = batch(480, 20);
  EXPECT_EQ(decision(runs), Decision::open);
}

TEST(Batches, CensoredSamplesNeverKeepWhatTheyMayHaveMissed) {
  EXPECT_EQ(decision(runs_of(10, batch(497, 0, 3))), Decision::kept);
  EXPECT_EQ(decision(runs_of(10, batch(494, 0, 6))), Decision::open);
  EXPECT_EQ(decision(runs_of(10, batch(400, 0, 100))), Decision::open) << "nor miss it";
  EXPECT_EQ(decision(runs_of(10, batch(400, 0, 100)), "acquire.p99<5ms"), Decision::missed);
}

TEST(Batches, ALongestWaitThatWasCutOffIsNeitherKeptNorMissedBelowTheBound) {
  Runs runs = runs_of(5, batch(100, 0));
  for (auto& run : runs) run.acquire.max = 0.010;
  EXPECT_EQ(decision(runs, "acquire.max<20ms"), Decision::kept);
  runs[2].acquire.at_least = {"max"};
  EXPECT_EQ(decision(runs, "acquire.max<20ms"), Decision::open);
  EXPECT_EQ(decision(runs, "acquire.max<5ms"), Decision::missed);
}

TEST(Batches, CountWhatWasNeverGranted) {
  Runs runs = runs_of(10, batch(500, 0));
  for (auto& run : runs) run.outcomes.refused = 10;
  EXPECT_EQ(decision(runs), Decision::missed);
  EXPECT_EQ(ruling(runs).samples, 5100);
  for (auto& run : runs) run.outcomes = {.acquired = 500, .failed = 10};
  EXPECT_EQ(decision(runs), Decision::open) << "a failure may not be the lock's";
}

TEST(Batches, OtherFiguresAreDecidedByTheRuns) {
  Runs runs = runs_of(6, batch(100, 0));
  const std::vector<double> rates{98, 99, 100, 101, 102, 100};
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].sections_per_second = rates[i];
  EXPECT_EQ(decision(runs, "sections_per_second>98"), Decision::kept);
  EXPECT_EQ(decision(runs, "sections_per_second>=100.5"), Decision::open);
  EXPECT_EQ(decision(runs, "sections_per_second>102"), Decision::missed);
  EXPECT_EQ(decision(runs, "sections_per_second<98"), Decision::missed);
  // Each run counts for these.
  EXPECT_EQ(decision(runs, "audit.lost_updates==0"), Decision::kept);
  runs[5].audit.lost_updates = 1;
  EXPECT_EQ(decision(runs, "audit.lost_updates==0"), Decision::missed);
}

/// Batches of a process in which long waits come in clusters of ten.
Runs clustered(double share, std::uint32_t seed) {
  std::mt19937 random(seed);
  Runs runs;
  for (int i = 0; i < 10; ++i) {
    std::poisson_distribution<std::uint64_t> clusters(500 * share / 10);
    const std::uint64_t lasting = 10 * clusters(random);
    runs.push_back(runs_of(1, batch(500 - lasting, lasting)).front());
  }
  return runs;
}

TEST(Batches, AreWrongAsSeldomAsTheySay) {
  int wrong = 0;
  constexpr int kTrials = 1000;
  for (int i = 0; i < kTrials; ++i) {
    // The percentile is just beyond the bound.
    wrong += decision(clustered(0.0101, static_cast<std::uint32_t>(i))) == Decision::kept ? 1 : 0;
  }
  EXPECT_LT(wrong, 0.1 * kTrials) << "5 %, and what ten batches do not show of their variance";
}

}  // namespace
}  // namespace lockbench::results

#include "loadgen/experiments/quorum_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;

std::vector<std::string> texts_of(const std::vector<QuorumPointPlan>& points) {
  std::vector<std::string> texts;
  texts.reserve(points.size());
  for (const QuorumPointPlan& point : points) texts.push_back(point.text());
  return texts;
}

TEST(QuorumPoints, OfOneNodeHaveNothingToLose) {
  EXPECT_THAT(texts_of(points_of({.nodes = {1}, .contending = 4})),
              ElementsAre("redis-set-nx-lua, 1 node, 1 client", "redis-wait, 1 node, 1 client",
                          "redlock, 1 node, 1 client", "redlock-parallel, 1 node, 1 client",
                          "redis-set-nx-lua, 1 node, 4 clients", "redis-wait, 1 node, 4 clients",
                          "redlock, 1 node, 4 clients", "redlock-parallel, 1 node, 4 clients"));
}

TEST(QuorumPoints, StrategiesTakeTurnsInEachConstellation) {
  EXPECT_THAT(
      texts_of(points_of({.nodes = {5}, .contending = 1})),
      ElementsAre(
          "redis-set-nx-lua, 1 node, 1 client", "redis-wait, 1 node, 1 client",
          "redlock, 5 nodes, 1 client", "redlock-parallel, 5 nodes, 1 client",
          "redlock, 5 nodes, 2 down, 1 client", "redlock-parallel, 5 nodes, 2 down, 1 client",
          "redlock, 5 nodes, 2 frozen, 1 client", "redlock-parallel, 5 nodes, 2 frozen, 1 client",
          "redlock, 5 nodes, 2 slow, 1 client", "redlock-parallel, 5 nodes, 2 slow, 1 client",
          "redlock, 5 nodes, 3 down, 1 client", "redlock-parallel, 5 nodes, 3 down, 1 client"));
}

TEST(QuorumPoints, AMinorityIsWhatAQuorumOutlives) {
  const auto texts = texts_of(points_of({.nodes = {2, 3, 4, 7}, .contending = 1}));
  for (const char* there :
       {"redlock, 3 nodes, 1 down, 1 client", "redlock, 4 nodes, 1 down, 1 client",
        "redlock, 7 nodes, 3 down, 1 client", "redlock, 3 nodes, 2 down, 1 client",
        "redlock, 7 nodes, 4 down, 1 client"}) {
    EXPECT_THAT(texts, Contains(there));
  }
  EXPECT_TRUE(std::none_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.starts_with("redlock, 2 nodes, 1 down");
  })) << "two nodes outlive nothing";
}

results::Distribution of(std::initializer_list<Duration> samples) {
  HistogramSnapshot snapshot;
  for (const Duration sample : samples) snapshot.record(sample);
  return to_distribution(snapshot);
}

results::Run half(std::uint64_t sections, double commands) {
  results::Run run;
  run.duration_seconds = 0.5;
  run.sections = sections;
  run.commands_per_section = commands;
  run.outcomes.acquired = sections;
  return run;
}

TEST(QuorumPointSum, PutsItsHalvesTogether) {
  QuorumPointSum sum({.strategy = "redlock", .nodes = 5, .clients = 8, .fault = {.slow = 2}}, 20ms);
  EXPECT_FALSE(sum.any());
  results::Run first = half(30, 10);
  first.acquire = of({1ms, 1ms, 3ms});
  first.quorum = {.split_votes = 2, .rounds_per_grant = 1, .validity = of({9s, 8s})};
  results::Run second = half(10, 14);
  second.outcomes.refused = 20;
  second.outcomes.failed = 15;
  second.outcomes.unknown = 3;
  second.outcomes.timed_out = 2;
  second.outcomes.abandoned = 8;
  second.acquire = of({2ms});
  second.quorum = {.split_votes = 3, .rounds_per_grant = 4, .validity = of({7s})};
  sum.add(first);
  sum.add(second);
  ASSERT_TRUE(sum.any());
  const results::QuorumPoint point = sum.point();
  EXPECT_EQ(point.strategy, "redlock");
  EXPECT_EQ(point.nodes, 5U);
  EXPECT_EQ(point.slow, 2U);
  EXPECT_DOUBLE_EQ(point.slow_seconds, 0.02);
  EXPECT_EQ(point.clients, 8U);
  EXPECT_DOUBLE_EQ(point.sections_per_second, 40);
  EXPECT_DOUBLE_EQ(point.commands_per_section, 11);
  EXPECT_EQ(point.split_votes, 5U);
  EXPECT_DOUBLE_EQ(point.rounds_per_grant, 2);
  EXPECT_DOUBLE_EQ(point.granted_share, 0.5) << "who still waited at the end is not counted";
  EXPECT_EQ(point.acquire.count, 4U);
  EXPECT_DOUBLE_EQ(point.acquire.max, 3e-3);
  EXPECT_DOUBLE_EQ(point.validity.min, 7);
}

QuorumPointSum sum_of(const QuorumPointPlan& plan, const std::vector<Duration>& p50s) {
  QuorumPointSum sum(plan, 20ms);
  for (const Duration p50 : p50s) {
    results::Run run = half(10, 10);
    if (p50 > Duration::zero()) run.acquire = of({p50});
    sum.add(run);
  }
  return sum;
}

TEST(QuorumPoints, ANodesCostIsComparedRoundByRound) {
  // The machine gets slower from round to round, which is no difference between the points.
  const auto points = points_of(std::vector{
      sum_of({.strategy = "redlock", .nodes = 1}, {100us, 200us, 300us}),
      sum_of({.strategy = "redlock", .nodes = 5}, {140us, 244us, 336us}),
      sum_of({.strategy = "other", .nodes = 5}, {1ms, 1ms, 1ms}),
      sum_of({.strategy = "redlock", .nodes = 5, .fault = {.down = 2}}, {900us, 900us, 900us})});
  ASSERT_EQ(points.size(), 4U);
  EXPECT_FALSE(points[0].node_cost_seconds) << "the smallest quorum";
  ASSERT_TRUE(points[1].node_cost_seconds);
  EXPECT_NEAR(*points[1].node_cost_seconds, 10e-6, 1e-6);
  ASSERT_TRUE(points[1].node_cost_interval);
  EXPECT_GT(points[1].node_cost_interval->low, 5e-6);
  EXPECT_LT(points[1].node_cost_interval->high, 15e-6);
  EXPECT_FALSE(points[2].node_cost_seconds) << "nothing to compare it with";
  EXPECT_FALSE(points[3].node_cost_seconds) << "a faulty quorum";
}

TEST(QuorumPoints, ARoundWithoutGrantsIsNotCompared) {
  const auto points =
      points_of(std::vector{sum_of({.strategy = "redlock", .nodes = 1}, {100us, 0us, 300us}),
                            sum_of({.strategy = "redlock", .nodes = 5}, {140us, 900us, 340us})});
  ASSERT_TRUE(points[1].node_cost_seconds);
  EXPECT_NEAR(*points[1].node_cost_seconds, 10e-6, 1e-6);
  EXPECT_TRUE(points[1].node_cost_interval);
}

TEST(QuorumPoints, WithoutRoundsInCommonHaveNoCost) {
  const auto points =
      points_of(std::vector{sum_of({.strategy = "redlock", .nodes = 1}, {100us, 0us}),
                            sum_of({.strategy = "redlock", .nodes = 5}, {0us, 140us})});
  EXPECT_FALSE(points[1].node_cost_seconds);
  EXPECT_FALSE(points[1].node_cost_interval);
}

TEST(QuorumPointSum, OneHalfThatFailedIsAFailure) {
  results::Run failed = half(10, 10);
  failed.audit.verdict = results::Verdict::violated;
  QuorumPointSum sum({.strategy = "redlock", .nodes = 3}, 20ms);
  sum.add(half(10, 10));
  EXPECT_EQ(sum.point().violated, false);
  sum.add(failed);
  sum.add(half(10, 10));
  EXPECT_EQ(sum.point().violated, true);
}

TEST(QuorumPointSum, WhatWasNotAuditedIsNotKnown) {
  results::Run unaudited = half(0, 0);
  unaudited.audit.verdict = results::Verdict::unaudited;
  QuorumPointSum sum({.strategy = "redlock", .nodes = 3}, 20ms);
  sum.add(unaudited);
  EXPECT_EQ(sum.point().violated, std::nullopt);
  sum.add(half(10, 10));
  EXPECT_EQ(sum.point().violated, false);
}

TEST(QuorumPointSum, NothingGrantedIsAFigureToo) {
  QuorumPointSum sum({.strategy = "redlock", .nodes = 3, .fault = {.down = 2}}, 20ms);
  results::Run run = half(0, 0);
  run.outcomes.failed = 12;
  run.quorum.emplace();
  run.quorum->rounds_per_grant = std::numeric_limits<double>::quiet_NaN();
  sum.add(run);
  ASSERT_TRUE(sum.any());
  const results::QuorumPoint point = sum.point();
  EXPECT_EQ(point.granted_share, 0);
  EXPECT_EQ(point.sections_per_second, 0);
  EXPECT_EQ(point.acquire.count, 0U);
  EXPECT_TRUE(std::isnan(point.rounds_per_grant));
  EXPECT_TRUE(std::isnan(point.commands_per_section));
  EXPECT_EQ(point.slow_seconds, 0) << "none is slow";
}

TEST(Distribution, IsASnapshotAgain) {
  HistogramSnapshot snapshot;
  for (int i = 1; i < 1000; ++i) snapshot.record(i * 7777ns);
  snapshot.record(2h);  // above the range
  const results::Distribution once = to_distribution(snapshot);
  const results::Distribution twice = to_distribution(to_snapshot(once));
  EXPECT_EQ(twice.count, once.count);
  EXPECT_EQ(twice.overflow, 1U);
  EXPECT_EQ(twice.min, once.min);
  EXPECT_EQ(twice.max, once.max);
  EXPECT_EQ(twice.p50, once.p50);
  EXPECT_EQ(twice.p99, once.p99);
  EXPECT_NEAR(twice.mean, once.mean, 1e-9);
  ASSERT_EQ(twice.buckets.size(), once.buckets.size());
  for (std::size_t i = 0; i < once.buckets.size(); ++i) {
    EXPECT_EQ(twice.buckets[i].upper, once.buckets[i].upper);
    EXPECT_EQ(twice.buckets[i].count, once.buckets[i].count);
  }
}

}  // namespace
}  // namespace lockbench::loadgen

#include "exporter/run_metrics.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/run_shared.h"

namespace lockbench::exporter {
namespace {

using namespace std::chrono_literals;

loadgen::HistogramSnapshot fine(std::initializer_list<Duration> samples) {
  loadgen::HistogramSnapshot snapshot;
  for (const Duration sample : samples) snapshot.record(sample);
  return snapshot;
}

LatencyBuckets of(std::initializer_list<Duration> samples) {
  LatencyBuckets buckets;
  buckets.add(fine(samples));
  return buckets;
}

TEST(LatencyBucketsTest, ABoundIsMetWithinTheFineHistogramsError) {
  for (std::size_t n = 0; n < LatencyBuckets::kBounds; ++n) {
    const Duration bound(LatencyBuckets::bound(n));
    EXPECT_EQ(of({bound * 98 / 100}).cumulative()[n], 1U) << n;
    EXPECT_EQ(of({bound * 102 / 100}).cumulative()[n], 0U) << n;
  }
}

TEST(LatencyBucketsTest, AddsUp) {
  LatencyBuckets sum = of({1us, 2h});
  sum.add(fine({1us, 1s}));
  EXPECT_EQ(sum.count(), 4U);
  EXPECT_EQ(sum.cumulative()[0], 2U);
  EXPECT_EQ(sum.cumulative().back(), 3U) << "two hours lie above all bounds";
  EXPECT_DOUBLE_EQ(sum.sum_seconds(), 7201.000002);
}

class RunMetricsTest : public testing::Test {
 protected:
  StrategyMetrics of_strategy(std::size_t number = 0) const { return metrics_.read().at(number); }
  std::uint64_t sections() const { return of_strategy().totals.counts[loadgen::Count::sections]; }

  const Descriptor first_{.name = "first", .backend = "store"};
  const Descriptor second_{.name = "second", .backend = "store"};
  RunMetrics metrics_{{&first_, &second_}};
  test::RunUnderTest run_{first_};
};

TEST_F(RunMetricsTest, SeesARunThatIsUnderWay) {
  run_.workload().rate = 50;
  metrics_.run_begins(run_.shared());
  run_.grant(1ms);
  run_.recorder().client(0).state = loadgen::ClientState::holding;
  run_.recorder().client(1).state = loadgen::ClientState::waiting;
  EXPECT_EQ(sections(), 1U);
  const StrategyMetrics seen = of_strategy();
  EXPECT_EQ(seen.totals.timings[loadgen::Timing::acquired].count(), 1U);
  EXPECT_EQ(seen.present.holders, 1U);
  EXPECT_EQ(seen.present.waiters, 1U);
  EXPECT_EQ(seen.present.clients, 2U);
  EXPECT_EQ(seen.present.target_sections_per_second, 50);
  EXPECT_DOUBLE_EQ(seen.present.jain, 0.5);
  metrics_.run_ends(run_.shared(), nullptr);
}

class PausedProbeTest : public RunMetricsTest {
 protected:
  PausedProbeTest() { metrics_.run_begins(run_.shared()); }
  Totals totals() const { return of_strategy().totals; }
  void overlap() {
    for (const int client : {0, 1}) {
      run_.shared().audit.enter(0, client, Mode::exclusive, {}, {}, Carrier::current().now());
    }
  }
};

TEST_F(PausedProbeTest, WhatHappenedAfterABeatIsNotShownBeforeItIsUnderstood) {
  run_.grant(1ms);
  EXPECT_EQ(sections(), 1U) << "no beat yet";
  metrics_.beat(first_);
  run_.grant(1ms);
  overlap();
  EXPECT_EQ(sections(), 1U) << "the process may stand still: a counter must not go back then";
  EXPECT_EQ(totals().overlaps, 0U);
  metrics_.beat(first_);
  EXPECT_EQ(sections(), 2U);
  EXPECT_EQ(totals().overlaps, 1U);
  metrics_.run_ends(run_.shared(), nullptr);
}

TEST_F(PausedProbeTest, ARunThatStoodStillCountsUpToItsLatestBeat) {
  run_.grant(1ms);
  metrics_.beat(first_);
  overlap();
  metrics_.stood_still(first_, 9s);
  metrics_.beat(first_);
  EXPECT_EQ(totals().overlaps, 0U);
  EXPECT_EQ(totals().paused_seconds, 9);
  results::Run result;
  result.audit.lost_updates = 7;
  metrics_.run_ends(run_.shared(), &result);
  EXPECT_EQ(sections(), 1U);
  EXPECT_EQ(totals().overlaps, 0U);
  EXPECT_EQ(totals().lost_updates, 0U);
  EXPECT_EQ(totals().paused_seconds, 9);
  test::RunUnderTest next(first_);
  metrics_.run_begins(next.shared());
  next.grant(1ms);
  EXPECT_EQ(sections(), 2U) << "the next run counts again";
  metrics_.run_ends(next.shared(), nullptr);
}

TEST_F(RunMetricsTest, NewConnectionsThatFailAreShownBesideTheState) {
  EXPECT_FALSE(of_strategy().present.connect_failing);
  metrics_.set_connect_failing(first_, "h:1: ERR max number of clients reached");
  EXPECT_TRUE(of_strategy().present.connect_failing);
  EXPECT_EQ(
      metrics_.failing(),
      std::vector<std::string>{"first: new connections: h:1: ERR max number of clients reached"});
  metrics_.set_connect_failing(first_, std::nullopt);
  EXPECT_EQ(metrics_.failing(), std::vector<std::string>());
}

TEST_F(RunMetricsTest, TheAuditSpansTheWholeRun) {
  for (const loadgen::Phase phase : loadgen::kPhases)
    run_.add(loadgen::Count::stale_rejected, 1, phase);
  for (const int client : {0, 1}) {
    run_.shared().audit.enter(0, client, Mode::exclusive, {}, {}, Carrier::current().now());
  }
  metrics_.run_begins(run_.shared());
  EXPECT_EQ(of_strategy().totals.counts[loadgen::Count::stale_rejected], 3U);
  EXPECT_EQ(of_strategy().totals.overlaps, 1U);
  results::Run result;
  result.audit.lost_updates = 7;
  EXPECT_EQ(of_strategy().totals.lost_updates, 0U);
  metrics_.run_ends(run_.shared(), &result);
  EXPECT_EQ(of_strategy().totals.lost_updates, 7U);
}

TEST_F(RunMetricsTest, VotesAddUpOverRunsAndThoseThatComeLateHaveNoTime) {
  const auto at = [](Vote vote) { return static_cast<std::size_t>(vote); };
  const auto expect_votes = [&](std::uint64_t each) {
    const std::vector<NodeTotals> nodes = of_strategy().totals.nodes;
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[0].votes[at(Vote::granted)], each);
    EXPECT_EQ(nodes[0].votes[at(Vote::refused)], 0U);
    EXPECT_EQ(nodes[1].votes[at(Vote::refused)], each);
    EXPECT_EQ(nodes[1].votes[at(Vote::failed)], each) << "late ones are votes too";
    EXPECT_EQ(nodes[1].taken[at(Vote::refused)].count(), each);
    EXPECT_EQ(nodes[1].taken[at(Vote::failed)].count(), 0U) << "when a late one came is not known";
  };
  for (std::uint64_t runs = 1; runs <= 2; ++runs) {
    test::RunUnderTest run(first_, 2, 2);
    metrics_.run_begins(run.shared());
    for (const loadgen::Phase phase : loadgen::kPhases) {
      run.recorder().vote(phase, 0, Vote::granted, 1ms);
      run.recorder().vote(phase, 1, Vote::refused, 2ms);
      run.recorder().vote(phase, 1, Vote::failed, 50ms, true);
    }
    expect_votes(runs);
    metrics_.run_ends(run.shared(), nullptr);
    expect_votes(runs);
  }
}

TEST_F(RunMetricsTest, RunsOfSeveralStrategiesMayBeUnderWayAtOnce) {
  test::RunUnderTest other(second_);
  metrics_.run_begins(run_.shared());
  metrics_.run_begins(other.shared());
  run_.grant(1ms);
  other.grant(1ms);
  other.grant(1ms);
  EXPECT_EQ(of_strategy(0).totals.counts[loadgen::Count::sections], 1U);
  EXPECT_EQ(of_strategy(1).totals.counts[loadgen::Count::sections], 2U);
  metrics_.run_ends(run_.shared(), nullptr);
  metrics_.run_ends(other.shared(), nullptr);
}

TEST_F(RunMetricsTest, AStoreThatWasNotReachedIsAFailure) {
  metrics_.not_connected(first_, loadgen::FailureReason::auth, 2s, 3);
  const Totals totals = of_strategy().totals;
  EXPECT_EQ(totals.timings[loadgen::Timing::failed].count(), 3U);
  EXPECT_DOUBLE_EQ(totals.timings[loadgen::Timing::failed].sum_seconds(), 6);
  EXPECT_EQ(totals.counts[loadgen::Count::failed_auth], 3U);
}

TEST_F(RunMetricsTest, RivalsHaveNoShareOfTheLoad) {
  test::RunUnderTest run(first_, 4);
  run.workload().meet_every = 1s;
  metrics_.run_begins(run.shared());
  for (const int client : {0, 1}) run.grant(1ms, loadgen::Phase::measured, client);
  EXPECT_DOUBLE_EQ(of_strategy().present.jain, 1);
  metrics_.run_ends(run.shared(), nullptr);
}

TEST_F(RunMetricsTest, StuckLocksAndLostNumbersAreSeen) {
  metrics_.run_begins(run_.shared());
  run_.shared().handoff.found_taken(0, run_.shared().handoff.begin_wait(0));
  for (const std::uint64_t number : {2, 1}) {
    loadgen::Audit& audit = run_.shared().audit;
    const auto mark = audit.begin_acquire(0);
    audit.enter(0, 0, Mode::exclusive, number, mark, Carrier::current().now());
    audit.leave(0, Mode::exclusive, Carrier::current().now());
  }
  EXPECT_EQ(of_strategy().present.stuck, 1U);
  EXPECT_EQ(of_strategy().totals.fence_resets, 1U);
  metrics_.run_ends(run_.shared(), nullptr);
  EXPECT_EQ(of_strategy().present.stuck, 0U);
  EXPECT_EQ(of_strategy().totals.fence_resets, 1U);
}

TEST_F(RunMetricsTest, FaultsComeAndGo) {
  constexpr auto kFault = loadgen::FaultKind::failover;
  constexpr auto kPlace = static_cast<std::size_t>(kFault);
  const Descriptor unknown{.name = "unknown", .backend = "store"};
  test::RunUnderTest other{unknown};
  metrics_.fault_changes(run_.shared(), kFault, true);
  metrics_.fault_changes(other.shared(), loadgen::FaultKind::store_kill, true);
  EXPECT_TRUE(of_strategy().present.faults[kPlace]);
  EXPECT_FALSE(of_strategy().present.faults[0]);
  EXPECT_FALSE(of_strategy(1).present.faults[kPlace]);
  metrics_.fault_changes(run_.shared(), kFault, false);
  EXPECT_FALSE(of_strategy().present.faults[kPlace]);
}

TEST_F(RunMetricsTest, CountersNeverGoBackWhileRunsComeAndGo) {
  constexpr int kRuns = 20, kGrants = 500;
  std::atomic<bool> over{false};
  std::jthread reader([&] {
    std::uint64_t last = 0;
    while (!over) {
      const std::uint64_t now = sections();
      EXPECT_GE(now, last);
      last = now;
    }
  });
  for (int i = 0; i < kRuns; ++i) {
    test::RunUnderTest run(first_);
    metrics_.run_begins(run.shared());
    for (int n = 0; n < kGrants; ++n) run.grant(1us);
    metrics_.run_ends(run.shared(), nullptr);
  }
  over = true;
  reader.join();
  EXPECT_EQ(sections(), static_cast<std::uint64_t>(kRuns * kGrants));
}

}  // namespace
}  // namespace lockbench::exporter

#include <gtest/gtest.h>

#include "exporter/run_metrics.h"
#include "tests/support/run_shared.h"

namespace lockbench::exporter {
namespace {

using namespace std::chrono_literals;

std::uint64_t votes(const NodeTotals& node, Vote vote) {
  return node.votes[static_cast<std::size_t>(vote)];
}

/// Two runs of a lock on two nodes, one after the other.
class QuorumMetricsTest : public testing::Test {
 protected:
  Totals totals() const { return metrics_.read().front().totals; }

  /// Half in the warm-up, half measured, and what the end saw.
  static void happens_in(test::RunUnderTest& run) {
    loadgen::Recorder& recorder = run.recorder();
    for (const loadgen::Phase phase :
         {loadgen::Phase::unmeasured, loadgen::Phase::measured, loadgen::Phase::ending}) {
      recorder.vote(phase, 0, Vote::granted, 1ms);
      recorder.vote(phase, 1, Vote::refused, 2ms);
      recorder.vote(phase, 1, Vote::failed, 50ms, true);
      recorder.round(phase, true, std::nullopt);
      recorder.round(phase, false, 8s);
    }
  }

  /// Per phase that counts, of so many runs.
  void expect_totals(std::uint64_t runs) const {
    const Totals seen = totals();
    ASSERT_EQ(seen.nodes.size(), 2U);
    const std::uint64_t each = 2 * runs;
    EXPECT_EQ(votes(seen.nodes[0], Vote::granted), each);
    EXPECT_EQ(votes(seen.nodes[0], Vote::refused), 0U);
    EXPECT_EQ(votes(seen.nodes[1], Vote::refused), each);
    EXPECT_EQ(votes(seen.nodes[1], Vote::failed), each) << "late ones are votes too";
    const auto& taken = seen.nodes[1].taken;
    EXPECT_EQ(taken[static_cast<std::size_t>(Vote::refused)].count(), each);
    EXPECT_EQ(taken[static_cast<std::size_t>(Vote::failed)].count(), 0U)
        << "when a late one came is not known";
    EXPECT_EQ(seen.counts[loadgen::Count::quorum_rounds], 2 * each);
    EXPECT_EQ(seen.counts[loadgen::Count::split_votes], each);
    EXPECT_EQ(seen.timings[loadgen::Timing::quorum_validity].count(), each);
    EXPECT_DOUBLE_EQ(seen.timings[loadgen::Timing::quorum_validity].sum_seconds(),
                     8 * static_cast<double>(each));
  }

  const Descriptor strategy_{.name = "quorum", .backend = "store"};
  RunMetrics metrics_{{&strategy_}};
};

TEST_F(QuorumMetricsTest, SeesVotesAndRoundsOfARunThatIsUnderWay) {
  test::RunUnderTest run(strategy_, 2, 2);
  metrics_.run_begins(run.shared());
  happens_in(run);
  expect_totals(1);
  metrics_.run_ends(run.shared(), nullptr);
  expect_totals(1);
}

TEST_F(QuorumMetricsTest, OneRunAddsToAnother) {
  for (std::uint64_t runs = 1; runs <= 2; ++runs) {
    test::RunUnderTest run(strategy_, 2, 2);
    metrics_.run_begins(run.shared());
    happens_in(run);
    metrics_.run_ends(run.shared(), nullptr);
    expect_totals(runs);
  }
}

}  // namespace
}  // namespace lockbench::exporter

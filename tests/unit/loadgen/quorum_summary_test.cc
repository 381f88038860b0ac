#include <cmath>

#include "tests/unit/loadgen/summary_fixture.h"

namespace lockbench::loadgen {
namespace {

/// On two nodes.
class QuorumSummaryTest : public SummaryTest {
 protected:
  QuorumSummaryTest() {
    strategy_.backend = "redis";
    strategy_.traits.nodes = 2;
    of_quorum_.endpoints()["redis"] = {"redis://:secret@127.0.0.1:7001", "redis://127.0.0.1:7002"};
  }

  results::Quorum quorum() {
    results::Run result;
    summarise(of_quorum_.shared(), 2s, result);
    return result.quorum.value();
  }

  test::RunUnderTest of_quorum_{strategy_, 2, 2, make_memory_counter(1)};
  Recorder& recorder_ = of_quorum_.recorder();
};

TEST_F(QuorumSummaryTest, CountsTheVotesOfEachNode) {
  for (int i = 0; i < 3; ++i) recorder_.vote(Phase::measured, 0, Vote::granted, 1ms);
  recorder_.vote(Phase::measured, 0, Vote::refused, 5ms);
  recorder_.vote(Phase::measured, 1, Vote::failed, 50ms);
  recorder_.vote(Phase::unmeasured, 1, Vote::granted, 1ms);
  const results::Quorum seen = quorum();
  EXPECT_EQ(seen.nodes, 2U);
  ASSERT_EQ(seen.votes.size(), 2U);
  EXPECT_EQ(seen.votes[0].node, "127.0.0.1:7001") << "no secret";
  EXPECT_EQ(seen.votes[0].granted, 3U);
  EXPECT_EQ(seen.votes[0].refused, 1U);
  EXPECT_EQ(seen.votes[0].failed, 0U);
  EXPECT_EQ(seen.votes[1].granted, 0U);
  EXPECT_EQ(seen.votes[1].failed, 1U);
  ASSERT_EQ(seen.node_seconds.size(), 2U);
  EXPECT_EQ(seen.node_seconds[0].count, 4U);
  EXPECT_DOUBLE_EQ(seen.node_seconds[0].max, 5e-3);
  EXPECT_EQ(seen.node_seconds[1].count, 0U) << "no answer took no time";
}

TEST_F(QuorumSummaryTest, CountsRoundsAgainstGrants) {
  EXPECT_TRUE(std::isnan(quorum().rounds_per_grant)) << "nothing was granted";
  recorder_.round(Phase::measured, true, std::nullopt);
  EXPECT_TRUE(std::isnan(quorum().rounds_per_grant));
  recorder_.round(Phase::measured, false, 9s);
  recorder_.round(Phase::measured, false, 8s);
  const results::Quorum seen = quorum();
  EXPECT_DOUBLE_EQ(seen.rounds_per_grant, 1.5);
  EXPECT_EQ(seen.split_votes, 1U);
  EXPECT_EQ(seen.validity.count, 2U);
  EXPECT_DOUBLE_EQ(seen.validity.min, 8);
}

TEST_F(SummaryTest, WaitingForReplicasHasADistribution) {
  run_.recorder.replicas_waited(Phase::unmeasured, 1ms, 2, 2);
  EXPECT_FALSE(summary().replication) << "the warm-up is no figure";
  run_.recorder.replicas_waited(Phase::measured, 1ms, 2, 2);
  run_.recorder.replicas_waited(Phase::measured, 1ms, 3, 2);
  run_.recorder.replicas_waited(Phase::measured, 100ms, 1, 2);
  const auto replication = summary().replication;
  ASSERT_TRUE(replication);
  EXPECT_EQ(replication->replicas, 2U);
  EXPECT_EQ(replication->refusals, 1U);
  EXPECT_EQ(replication->wait.count, 3U);
  EXPECT_DOUBLE_EQ(replication->wait.max, 0.1);
}

}  // namespace
}  // namespace lockbench::loadgen

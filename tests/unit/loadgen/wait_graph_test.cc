#include "loadgen/run/wait_graph.h"

#include <gtest/gtest.h>

namespace lockbench::loadgen {
namespace {

constexpr int kAnn = 0, kBob = 1, kCid = 2;
constexpr Wanted kA{.key = 1}, kB{.key = 2}, kC{.key = 3};
constexpr Wanted kReadA{.key = 1, .mode = Mode::shared};

/// Three clients; Ann's transaction is the oldest, Cid's the youngest.
class WaitGraphTest : public testing::Test {
 protected:
  WaitGraphTest() {
    for (const int client : {kAnn, kBob, kCid}) graph_.begin(client);
  }

  void take(int client, const Wanted& wanted) {
    ASSERT_TRUE(graph_.waits(client, wanted, OnDeadlock::timeout));
    graph_.granted(client);
  }
  void await(int client, const Wanted& wanted) {
    ASSERT_TRUE(graph_.waits(client, wanted, OnDeadlock::timeout));
  }
  /// Whether wait-die lets the client wait; it does not.
  bool may_wait(int client, const Wanted& wanted) {
    const bool may = graph_.waits(client, wanted, OnDeadlock::wait_die);
    if (may) graph_.gave_up(client);
    return may;
  }

  WaitGraph graph_{3, false};
};

TEST_F(WaitGraphTest, FindsACycleOfThree) {
  take(kAnn, kA);
  take(kBob, kB);
  take(kCid, kC);
  await(kAnn, kB);
  await(kBob, kC);
  EXPECT_FALSE(graph_.in_cycle(kAnn)) << "Cid goes on";
  await(kCid, kA);
  for (const int client : {kAnn, kBob, kCid}) EXPECT_TRUE(graph_.in_cycle(client));
}

TEST_F(WaitGraphTest, WhoWaitsForACycleIsNotInIt) {
  take(kAnn, kA);
  take(kBob, kB);
  await(kAnn, kB);
  await(kBob, kA);
  await(kCid, kA);
  EXPECT_FALSE(graph_.in_cycle(kCid));
}

TEST_F(WaitGraphTest, ACycleEndsWhenOneGivesUpAndReleases) {
  take(kAnn, kA);
  take(kBob, kB);
  await(kAnn, kB);
  await(kBob, kA);
  graph_.gave_up(kBob);
  EXPECT_FALSE(graph_.in_cycle(kAnn));
  graph_.released(kBob, kB.key);
  graph_.granted(kAnn);
  await(kBob, kA);
  EXPECT_FALSE(graph_.in_cycle(kBob));
}

TEST_F(WaitGraphTest, SharedLocksDoNotExcludeOneAnother) {
  take(kAnn, kReadA);
  take(kBob, kB);
  await(kAnn, kB);
  await(kBob, kReadA);
  EXPECT_FALSE(graph_.in_cycle(kAnn));
  graph_.gave_up(kBob);
  await(kBob, kA);
  EXPECT_TRUE(graph_.in_cycle(kAnn)) << "Bob writes what Ann reads";
}

TEST_F(WaitGraphTest, AQueueMakesClientsWaitForThoseBeforeThem) {
  for (const bool queues : {false, true}) {
    WaitGraph graph(3, queues);
    const auto asks = [&](int client, const Wanted& wanted) {
      ASSERT_TRUE(graph.waits(client, wanted, OnDeadlock::timeout));
    };
    asks(kAnn, kReadA);
    graph.granted(kAnn);
    asks(kCid, kB);
    graph.granted(kCid);
    asks(kAnn, kB);
    asks(kBob, kA);
    EXPECT_FALSE(graph.in_cycle(kBob)) << "Cid goes on";
    asks(kCid, kReadA);
    for (const int client : {kAnn, kBob, kCid}) {
      EXPECT_EQ(graph.in_cycle(client), queues) << "Bob, who writes, is before Cid";
    }
  }
}

TEST_F(WaitGraphTest, InAQueueNobodyWaitsForThoseBehind) {
  WaitGraph graph(3, true);
  ASSERT_TRUE(graph.waits(kAnn, kA, OnDeadlock::timeout));
  ASSERT_TRUE(graph.waits(kBob, kA, OnDeadlock::timeout));
  ASSERT_TRUE(graph.waits(kCid, kReadA, OnDeadlock::timeout));
  for (const int client : {kAnn, kBob, kCid}) EXPECT_FALSE(graph.in_cycle(client));
}

TEST_F(WaitGraphTest, WaitDieLetsOnlyTheOlderWait) {
  take(kBob, kA);
  EXPECT_TRUE(may_wait(kAnn, kA));
  EXPECT_FALSE(may_wait(kCid, kA));
  graph_.released(kBob, kA.key);
  EXPECT_TRUE(may_wait(kCid, kA));
}

TEST_F(WaitGraphTest, WaitDieCountsThoseThatWait) {
  take(kCid, kA);
  await(kAnn, kA);
  EXPECT_FALSE(may_wait(kBob, kA)) << "behind Ann, who is older";
}

TEST_F(WaitGraphTest, WaitDieIgnoresLocksThatDoNotExclude) {
  take(kAnn, kReadA);
  EXPECT_TRUE(may_wait(kBob, kReadA));
  EXPECT_FALSE(may_wait(kBob, kA));
}

TEST_F(WaitGraphTest, ATransactionIsYoungerThanAllBefore) {
  take(kAnn, kA);
  graph_.released(kAnn, kA.key);
  graph_.begin(kAnn);
  take(kCid, kA);
  EXPECT_FALSE(may_wait(kAnn, kA));
}

}  // namespace
}  // namespace lockbench::loadgen

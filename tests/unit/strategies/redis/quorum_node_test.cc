#include "strategies/redis/client/quorum_node.h"

#include <gtest/gtest.h>

#include "tests/unit/strategies/redis/redlock_test.h"

namespace lockbench::redis {
namespace {

class QuorumNodeTest : public testing::Test {
 protected:
  NodeRequestPtr request(NodeRequest::Kind kind, int token) const {
    return std::make_shared<NodeRequest>(
        NodeRequest{.kind = kind, .key = "k", .token = std::to_string(token), .ttl = 1min});
  }

  SimClock clock_;
  SimEnv env_{clock_};
  FakeRedis redis_{clock_};
  Votes votes_;
  QuorumNode node_{0, "fake:1", redis_.make({.host = "fake"}, 1s, env_), 1s, votes_, env_};
};

TEST_F(QuorumNodeTest, PendingReleasesAreBounded) {
  ASSERT_TRUE(node_.ready(50ms));
  for (int i = 0; i < 1000; ++i) node_.ask(request(NodeRequest::Kind::acquire, i));
  redis_.refuse_connections(true);
  redis_.fail(1, FakeRedis::Failure::not_sent);
  node_.ask(request(NodeRequest::Kind::acquire, 1000));
  EXPECT_FALSE(node_.ready(50ms)) << "the connection is gone";
  for (int i = 0; i <= 1000; ++i) node_.skip(request(NodeRequest::Kind::release, i));
  EXPECT_GT(node_.pending_releases(), 100U);
  EXPECT_LE(node_.pending_releases(), 256U);
}

TEST_F(QuorumNodeTest, HasNoPendingReleaseOfWhatItWasNeverAsked) {
  redis_.refuse_connections(true);
  EXPECT_FALSE(node_.ready(50ms));
  node_.skip(request(NodeRequest::Kind::acquire, 1));
  node_.skip(request(NodeRequest::Kind::release, 1));
  EXPECT_EQ(node_.pending_releases(), 0U);
}

TEST_F(QuorumNodeTest, ALockThatHasExpiredIsNotReleased) {
  ASSERT_TRUE(node_.ready(50ms));
  redis_.fail(1, FakeRedis::Failure::answer_lost);
  node_.ask(request(NodeRequest::Kind::acquire, 1));
  ASSERT_TRUE(node_.answer());
  redis_.refuse_connections(true);
  EXPECT_FALSE(node_.ready(50ms));
  node_.skip(request(NodeRequest::Kind::release, 1));
  EXPECT_EQ(node_.pending_releases(), 1U);
  redis_.refuse_connections(false);
  clock_.advance(2min);
  redis_.take_commands();
  ASSERT_TRUE(node_.ready(50ms));
  node_.ask(request(NodeRequest::Kind::acquire, 2));
  EXPECT_EQ(redis_.take_commands(), (std::vector<std::string>{"SET k 2 NX PX 60000"}));
}

}  // namespace
}  // namespace lockbench::redis

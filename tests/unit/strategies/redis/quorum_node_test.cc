#include "strategies/redis/client/quorum_node.h"

#include <gtest/gtest.h>

#include "tests/unit/strategies/redis/redlock_test.h"

namespace lockbench::redis {
namespace {

class QuorumNodeTest : public testing::Test {
 protected:
  QuestionPtr question(Question::Kind kind, int token) const {
    return std::make_shared<Question>(
        Question{.kind = kind, .key = "k", .token = std::to_string(token), .ttl = 1min});
  }

  SimClock clock_;
  SimEnv env_{clock_};
  FakeRedis redis_{clock_};
  Votes votes_;
  QuorumNode node_{0, "fake:1", redis_.make({.host = "fake"}, 1s, env_), 1s, votes_, env_};
};

TEST_F(QuorumNodeTest, WhatItIsOwedIsBounded) {
  ASSERT_TRUE(node_.ready(50ms));
  for (int i = 0; i < 1000; ++i) node_.ask(question(Question::Kind::take, i));
  redis_.refuse_connections(true);
  redis_.fail(1, FakeRedis::Failure::not_sent);
  node_.ask(question(Question::Kind::take, 1000));
  EXPECT_FALSE(node_.ready(50ms)) << "the connection is gone";
  for (int i = 0; i <= 1000; ++i) node_.pass_over(question(Question::Kind::free, i));
  EXPECT_GT(node_.owed(), 100U);
  EXPECT_LE(node_.owed(), 256U);
}

TEST_F(QuorumNodeTest, IsOwedNothingThatItNeverHad) {
  redis_.refuse_connections(true);
  EXPECT_FALSE(node_.ready(50ms));
  node_.pass_over(question(Question::Kind::take, 1));
  node_.pass_over(question(Question::Kind::free, 1));
  EXPECT_EQ(node_.owed(), 0U);
}

TEST_F(QuorumNodeTest, WhatHasExpiredIsNotReleasedAnyMore) {
  ASSERT_TRUE(node_.ready(50ms));
  redis_.fail(1, FakeRedis::Failure::answer_lost);
  node_.ask(question(Question::Kind::take, 1));
  ASSERT_TRUE(node_.answer());
  redis_.refuse_connections(true);
  EXPECT_FALSE(node_.ready(50ms));
  node_.pass_over(question(Question::Kind::free, 1));
  EXPECT_EQ(node_.owed(), 1U);
  redis_.refuse_connections(false);
  clock_.advance(2min);
  redis_.take_commands();
  ASSERT_TRUE(node_.ready(50ms));
  node_.ask(question(Question::Kind::take, 2));
  EXPECT_EQ(redis_.take_commands(), (std::vector<std::string>{"SET k 2 NX PX 60000"}));
}

TEST_F(QuorumNodeTest, IsLeftAloneForLongerAndLonger) {
  redis_.refuse_connections(true);
  Duration last{};
  for (int failure = 0; failure < 12; ++failure) {
    EXPECT_FALSE(node_.ready(50ms));
    // When it tries again.
    redis_.refuse_connections(false);
    Duration alone{};
    for (; !node_.ready(50ms) && alone < 10s; alone += 5ms) clock_.advance(5ms);
    EXPECT_LE(alone, 1s);
    EXPECT_GE(alone + 5ms, last);
    last = alone;
    redis_.refuse_connections(true);
    redis_.fail(1, FakeRedis::Failure::not_sent);
    node_.ask(question(Question::Kind::take, failure));
    node_.answer();
  }
  EXPECT_GE(last, 500ms);
}

}  // namespace
}  // namespace lockbench::redis

#include "strategies/waiting/wait_policy.h"

#include <gtest/gtest.h>

#include "tests/support/sim_env.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;

/// Draws the same number every time.
class FixedRandom : public ForwardingEnv {
 public:
  FixedRandom(Env& inner, std::uint64_t value) : ForwardingEnv(inner), value_(value) {}
  std::uint64_t random() override { return value_; }

 private:
  std::uint64_t value_;
};

class WaitPolicyTest : public testing::Test {
 protected:
  /// The highest delay that can be drawn.
  Duration highest(const WaitPolicy& policy, std::uint32_t earlier_waits) {
    FixedRandom env(env_, ~std::uint64_t{0});
    return policy.delay(earlier_waits, env);
  }

  SimClock clock_;
  SimEnv env_{clock_};
};

TEST_F(WaitPolicyTest, BackoffDoublesItsBoundUpToTheCap) {
  const WaitPolicy policy = WaitPolicy::backoff(1ms, 100ms);
  for (std::uint32_t earlier = 0; earlier < 7; ++earlier) {
    const Duration bound = 1ms * (1 << earlier);
    EXPECT_LE(highest(policy, earlier), bound);
    EXPECT_GT(highest(policy, earlier), bound - 2ns);
  }
  for (const std::uint32_t earlier : {7U, 39U, 40U, 41U, 63U, 64U, 1'000'000U, ~0U}) {
    EXPECT_LE(highest(policy, earlier), 100ms) << earlier;
    EXPECT_GT(highest(policy, earlier), 100ms - 2ns) << earlier;
  }
}

TEST_F(WaitPolicyTest, RandomIsBetweenItsBoundsFromTheFirstWaitOn) {
  const WaitPolicy policy = WaitPolicy::random(50ms, 250ms);
  FixedRandom lowest(env_, 0);
  for (const std::uint32_t earlier : {0U, 7U, 1000U}) {
    EXPECT_EQ(policy.delay(earlier, lowest), 50ms);
    EXPECT_LE(highest(policy, earlier), 250ms);
    EXPECT_GT(highest(policy, earlier), 250ms - 2ns);
  }
  EXPECT_EQ(parse_wait_policy("random:50ms..250ms"), policy);
  EXPECT_EQ(to_string(policy), "random:50ms..250ms");
  EXPECT_FALSE(parse_wait_policy("random:250ms..50ms"));
  EXPECT_FALSE(parse_wait_policy("random:50ms"));
}

TEST_F(WaitPolicyTest, BackoffDoesNotOverflow) {
  const WaitPolicy policy = WaitPolicy::backoff(20h, 24h * 365 * 90);
  for (const std::uint32_t earlier : {0U, 10U, 40U, 64U, ~0U}) {
    EXPECT_GE(highest(policy, earlier), 19h) << earlier;
    EXPECT_LE(highest(policy, earlier), 24h * 365 * 90) << earlier;
  }
}

TEST_F(WaitPolicyTest, BackoffIsUniformOverItsWholeRange) {
  for (int quarter = 0; quarter < 4; ++quarter) {
    FixedRandom env(env_, static_cast<std::uint64_t>(quarter) << 62);
    EXPECT_EQ(WaitPolicy::backoff(1ms, 100ms).delay(20, env), quarter * 25ms);
  }
}

TEST(ParseWaitPolicy, RoundTrips) {
  for (const char* text :
       {"poll:100ms", "poll:0s", "poll:250us", "backoff:1ms..100ms", "backoff:10us..10us"}) {
    const auto policy = parse_wait_policy(text);
    ASSERT_TRUE(policy) << text;
    EXPECT_EQ(to_string(*policy), text);
  }
  EXPECT_EQ(parse_wait_policy("poll:100ms"), WaitPolicy::poll(100ms));
  EXPECT_EQ(parse_wait_policy("backoff:1ms..100ms"), WaitPolicy::backoff(1ms, 100ms));
  EXPECT_EQ(to_string(WaitPolicy{.kind = WaitKind::notify}), "notify");
  EXPECT_EQ(to_string(WaitPolicy{.kind = WaitKind::queue}), "queue");
}

TEST(ParseWaitPolicy, RejectsOtherTextAndSaysWhatIsAllowed) {
  for (const char* text :
       {"", "poll", "poll:", "poll:5", "poll:-1ms", "backoff", "backoff:1ms", "backoff:1ms..",
        "backoff:..1ms", "backoff:0s..1s", "backoff:2ms..1ms", "queue", "sleep:1ms", "Poll:1ms"}) {
    const auto policy = parse_wait_policy(text);
    ASSERT_FALSE(policy) << text;
    EXPECT_NE(policy.error().find("poll:INTERVAL, backoff:MIN..MAX"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockbench

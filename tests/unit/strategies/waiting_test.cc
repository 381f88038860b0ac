#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "strategies/waiting/retry.h"
#include "strategies/waiting/wait_policy.h"
#include "tests/support/sim_env.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;

Attempt taken() { return std::nullopt; }
Attempt granted() { return Lease{.key = "k", .state = std::make_shared<LeaseState>(TimePoint())}; }
Attempt broken(StoreError::Kind kind) { return tl::unexpected(StoreError{kind, "the reason"}); }

class RetryTest : public testing::Test {
 protected:
  /// Calls `attempt` with the number of the attempt, from 1.
  AcquireResult run(Duration timeout, const std::function<Attempt(int)>& attempt,
                    WaitPolicy policy = WaitPolicy::poll(100ms)) {
    const AcquireRequest request{
        .key = "k", .ttl = 10s, .deadline = start_ + timeout, .stop = stop_.get_token()};
    return retry(request, env_, policy, [&](const AcquireRequest&) {
      attempted_at_.push_back(clock_.now() - start_);
      return attempt(static_cast<int>(attempted_at_.size()));
    });
  }

  SimClock clock_;
  SimEnv env_{clock_};
  std::stop_source stop_;
  const TimePoint start_ = clock_.now();
  std::vector<Duration> attempted_at_;
};

TEST_F(RetryTest, AGrantEndsTheRetries) {
  const AcquireResult result = run(1s, [](int n) { return n < 3 ? taken() : granted(); });
  EXPECT_EQ(result.outcome, AcquireOutcome::acquired);
  ASSERT_TRUE(result.lease);
  EXPECT_EQ(result.lease->key, "k");
  EXPECT_EQ(result.attempts, 3U);
  EXPECT_EQ(attempted_at_, (std::vector<Duration>{0ms, 100ms, 200ms}));
}

TEST_F(RetryTest, OneLastAttemptFollowsAtTheDeadline) {
  const AcquireResult result = run(250ms, [](int) { return taken(); });
  EXPECT_EQ(result.outcome, AcquireOutcome::timed_out);
  EXPECT_FALSE(result.lease);
  EXPECT_EQ(result.attempts, 4U);
  EXPECT_EQ(attempted_at_, (std::vector<Duration>{0ms, 100ms, 200ms, 250ms}));
}

TEST_F(RetryTest, AGrantAtTheDeadlineStillCounts) {
  EXPECT_TRUE(run(250ms, [](int n) { return n < 4 ? taken() : granted(); }).lease);
}

TEST_F(RetryTest, SlowAttemptsDoNotOutlastTheDeadlineByMoreThanOne) {
  const AcquireResult result = run(
      100ms,
      [&](int) {
        clock_.advance(30ms);
        return taken();
      },
      WaitPolicy::poll(0ms));
  EXPECT_EQ(result.outcome, AcquireOutcome::timed_out);
  EXPECT_EQ(result.attempts, 4U);
  EXPECT_EQ(clock_.now() - start_, 120ms);
}

TEST_F(RetryTest, AnInfiniteDeadlineDoesNotOverflow) {
  const AcquireRequest request{.key = "k"};
  int attempts = 0;
  const AcquireResult result =
      retry(request, env_, WaitPolicy::poll(1h),
            [&](const AcquireRequest&) { return ++attempts < 50 ? taken() : granted(); });
  EXPECT_EQ(result.outcome, AcquireOutcome::acquired);
  EXPECT_EQ(clock_.now() - start_, 49h);
}

TEST_F(RetryTest, WaitsGrowByTheNumberOfWaitsBefore) {
  run(
      10s, [](int n) { return n < 4 ? taken() : granted(); }, WaitPolicy::backoff(1ms, 2s));
  SimEnv same_random(clock_);
  ASSERT_EQ(env_.waits().size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(env_.waits()[i].asked, WaitPolicy::backoff(1ms, 2s).delay(i, same_random));
  }
}

TEST_F(RetryTest, ACustomWaitGetsTheTimeLeftAndMayEndEarly) {
  std::vector<Duration> left;
  const AcquireRequest request{.key = "k", .ttl = 10s, .deadline = start_ + 250ms, .stop = {}};
  const AcquireResult result = retry_after(
      [&](std::uint32_t earlier_waits, Duration longest) {
        EXPECT_EQ(earlier_waits, left.size());
        left.push_back(longest);
        clock_.advance(std::min<Duration>(longest, 100ms));
        return earlier_waits == 0 ? WaitResult::signalled : WaitResult::timed_out;
      },
      request, env_, [](const AcquireRequest&) { return taken(); });
  EXPECT_EQ(result.outcome, AcquireOutcome::timed_out);
  EXPECT_EQ(left, (std::vector<Duration>{250ms, 150ms, 50ms}));
  EXPECT_EQ(result.attempts, 4U);
}

TEST_F(RetryTest, AFailureIsFinalAndAStopDoesNotHideWhatMayHaveTakenEffect) {
  using enum StoreError::Kind;
  const struct {
    StoreError::Kind kind;
    AcquireOutcome outcome, if_stopped;
  } cases[] = {{not_sent, AcquireOutcome::failed, AcquireOutcome::abandoned},
               {rejected, AcquireOutcome::failed, AcquireOutcome::abandoned},
               {unanswered, AcquireOutcome::unknown, AcquireOutcome::unknown}};
  for (const bool stopped : {false, true}) {
    if (stopped) stop_.request_stop();
    for (const auto& [kind, outcome, if_stopped] : cases) {
      const AcquireResult result = run(1s, [kind = kind](int) { return broken(kind); });
      EXPECT_EQ(result.outcome, stopped ? if_stopped : outcome);
      EXPECT_EQ(result.attempts, 1U);
      EXPECT_TRUE(stopped || result.reason == "the reason");
    }
  }
}

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
  for (const char* text : {"poll:100ms", "poll:0s", "poll:250us", "backoff:1ms..100ms",
                           "backoff:10us..10us", "random:50ms..250ms"}) {
    const auto policy = parse_wait_policy(text);
    ASSERT_TRUE(policy) << text;
    EXPECT_EQ(to_string(*policy), text);
  }
  EXPECT_EQ(parse_wait_policy("poll:100ms"), WaitPolicy::poll(100ms));
  EXPECT_EQ(parse_wait_policy("backoff:1ms..100ms"), WaitPolicy::backoff(1ms, 100ms));
  EXPECT_EQ(parse_wait_policy("random:1ms..2ms"), WaitPolicy::random(1ms, 2ms));
  EXPECT_EQ(to_string(WaitPolicy{.kind = WaitKind::notify}), "notify");
  EXPECT_EQ(to_string(WaitPolicy{.kind = WaitKind::queue}), "queue");
}

TEST(ParseWaitPolicy, RejectsOtherTextAndSaysWhatIsAllowed) {
  for (const char* text : {"", "poll", "poll:", "poll:5", "poll:-1ms", "backoff", "backoff:1ms",
                           "backoff:1ms..", "backoff:..1ms", "backoff:0s..1s", "backoff:2ms..1ms",
                           "random:2ms..1ms", "random:1ms", "queue", "sleep:1ms", "Poll:1ms"}) {
    const auto policy = parse_wait_policy(text);
    ASSERT_FALSE(policy) << text;
    EXPECT_NE(policy.error().find("poll:INTERVAL, backoff:MIN..MAX"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockbench

#include "strategies/waiting/retry.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/support/sim_env.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;

Attempt taken() { return std::nullopt; }
Attempt granted() { return Lease{.key = "k", .state = std::make_shared<LeaseState>(TimePoint())}; }
Attempt broken(StoreError::Kind kind) { return tl::unexpected(StoreError{kind, "the reason"}); }

class RetryTest : public testing::Test {
 protected:
  /// Asks `attempt` with the number of the attempt, from 1.
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

}  // namespace
}  // namespace lockbench

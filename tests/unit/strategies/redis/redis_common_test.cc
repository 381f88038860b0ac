#include "tests/support/test_names.h"
#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

/// What every lock on one Redis does, beside what the conformance tests ask of it on a server.
class EveryRedisLock : public RedisLockTest, public testing::WithParamInterface<std::string_view> {
 protected:
  RedisClient& client() { return RedisLockTest::client(GetParam()); }
};

TEST_P(EveryRedisLock, PollsUntilItsDeadline) {
  RedisClient &a = client(), &b = client();
  a.must_acquire(1h);
  const TimePoint start = clock_.now();
  const AcquireResult result = b.acquire(10s, 250ms);
  EXPECT_EQ(result.outcome, AcquireOutcome::timed_out);
  EXPECT_EQ(result.attempts, 4U);
  EXPECT_EQ(clock_.now() - start, 250ms);
}

TEST_P(EveryRedisLock, ARejectedCommandIsAFailureWithAReason) {
  RedisClient& a = client();
  for (const Failure failure : {Failure::not_sent, Failure::rejected}) {
    redis_->fail(GetParam() == "redis-setnx-expire-multi" ? 2 : 1, failure);
    const AcquireResult result = a.acquire(10s, 1s);
    EXPECT_EQ(result.outcome, AcquireOutcome::failed);
    EXPECT_FALSE(result.lease);
    EXPECT_EQ(result.attempts, 1U);
    EXPECT_NE(result.reason.find("fake:1"), std::string::npos) << result.reason;
    EXPECT_EQ(redis_->value("k"), std::nullopt);
  }
  a.must_acquire();  // it reconnects by itself
}

TEST_P(EveryRedisLock, SendsNothingBeforeTheFirstCall) {
  EXPECT_TRUE(client().lock->connect());
  EXPECT_EQ(commands(), Commands{});
}

TEST_P(EveryRedisLock, RenewsOnlyWhatCanBeRenewed) {
  redis_->set_round_trip(40ms);
  RedisClient& a = client();
  const Lease lease = a.must_acquire(5s);
  clock_.advance(3s);
  const TimePoint asked_at = clock_.now(), was = lease.state->valid_until();
  const RenewResult result = a.lock->renew(lease, 7s);
  if (!find_strategy(GetParam())->traits.renew_check) {
    EXPECT_EQ(result.outcome, RenewOutcome::unsupported);
    EXPECT_EQ(lease.state->valid_until(), was);
    return;
  }
  EXPECT_EQ(result.outcome, RenewOutcome::renewed);
  // From before the command was sent, the last one if there are several.
  const TimePoint renewed_until = lease.state->valid_until();
  EXPECT_GE(renewed_until, asked_at + 7s);
  EXPECT_LE(renewed_until, clock_.now() - 40ms + 7s);
  EXPECT_GE(*redis_->ttl("k"), lease.state->valid_until() - clock_.now());

  redis_->fail(1, Failure::request_lost);
  EXPECT_EQ(a.lock->renew(lease, 9s).outcome, RenewOutcome::failed);
  EXPECT_EQ(lease.state->valid_until(), renewed_until);
  EXPECT_EQ(lease.state->lost_at(), std::nullopt);

  redis_->erase("k");
  EXPECT_EQ(a.lock->renew(lease, 9s).outcome, RenewOutcome::not_owner);
  EXPECT_EQ(lease.state->lost_at(), clock_.now());  // when it learned of it
}

INSTANTIATE_TEST_SUITE_P(, EveryRedisLock, testing::ValuesIn(kSingleNodeLocks),
                         [](const auto& tested) { return test::test_name_of(tested.param); });

TEST(RedisLock, NeedsAnEndpoint) {
  const StrategyOptions options;
  SimClock clock;
  SimEnv env(clock);
  Services services;
  for (const Endpoints& endpoints :
       {Endpoints{}, Endpoints{{"redis", {}}}, Endpoints{{"redis", {"nonsense"}}}}) {
    EXPECT_THROW(
        make_strategy(
            *find_strategy("redis-setnx"),
            {.endpoints = endpoints, .options = options, .env = env, .services = services}),
        std::invalid_argument);
  }
}

}  // namespace
}  // namespace lockbench::redis

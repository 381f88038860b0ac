#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

class RenewedLockTest : public RedisLockTest {};

TEST_F(RenewedLockTest, TheWatchdogKeepsTheLockUntilItsRelease) {
  RedisClient &a = client("redis-watchdog"), &b = client("redis-watchdog");
  const Lease lease = a.must_acquire(9s);
  renew_for(100s);
  EXPECT_TRUE(lease.state->valid_at(clock_.now()));
  EXPECT_GE(*redis_->ttl("k"), 6s);
  EXPECT_EQ(b.acquire().outcome, AcquireOutcome::refused);
  commands();
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  commands();
  renew_for(100s);
  EXPECT_EQ(commands(), Commands{});
  EXPECT_EQ(scheduler_->kept(), 0U);
}

TEST_F(RenewedLockTest, TheFirstOfABatchSendsTheScriptsSource) {
  RedisClient& a = client("redis-watchdog");
  const Lease one = a.must_acquire(9s);
  const AcquireResult two = a.lock->acquire({.key = "l", .ttl = 9s});
  ASSERT_TRUE(two.lease);
  commands();
  for (int restart = 0; restart < 2; ++restart) {
    renew_for(3s);
    EXPECT_EQ(commands(), (Commands{"EVAL renew_if_token 1 k " + one.token + " 9000",
                                    "EVALSHA renew_if_token 1 l " + two.lease->token + " 9000"}));
    redis_->forget_scripts();
  }
  EXPECT_EQ(one.state->lost_at(), std::nullopt);
}

TEST_F(RenewedLockTest, TheNaiveWatchdogRenewsAnotherClientsLock) {
  RedisClient &a = client("redis-watchdog-naive"), &b = client("redis-set-nx-lua");
  const Lease lost = a.must_acquire(10s);
  redis_->erase("k");
  b.must_acquire(9500ms);
  commands();
  renew_for(7900ms);
  EXPECT_EQ(commands(), Commands{});
  renew_for(100ms);
  EXPECT_EQ(commands(), Commands{"EXPIRE k 10"});
  EXPECT_EQ(*redis_->ttl("k"), 10s);  // the other's
  EXPECT_EQ(lost.state->lost_at(), std::nullopt);
}

TEST_F(RenewedLockTest, SurvivesAnOutageOfTheServer) {
  RedisClient& a = client("redis-watchdog");
  const Lease lease = a.must_acquire(9s);
  redis_->refuse_connections(true);
  redis_->fail(1, Failure::request_lost);
  renew_for(5s);
  redis_->refuse_connections(false);
  renew_for(10s);
  EXPECT_TRUE(lease.state->valid_at(clock_.now()));
  EXPECT_EQ(lease.state->lost_at(), std::nullopt);
}

TEST_F(RenewedLockTest, AReentrantLockCountsAndReportsTheRestOfTheTtl) {
  RedisClient &a = client("redis-reentrant"), &b = client("redis-reentrant");
  const Lease outer = a.must_acquire(5s), inner = a.must_acquire(5s);
  const TimePoint start = clock_.now();
  EXPECT_EQ(a.lock->release(inner).outcome, ReleaseOutcome::released);
  EXPECT_EQ(b.acquire().outcome, AcquireOutcome::refused);
  clock_.advance(4950ms);
  // What is left is less than a poll's interval.
  EXPECT_EQ(b.acquire(5s, 1s).outcome, AcquireOutcome::acquired);
  EXPECT_EQ(clock_.now() - start, 5s);
  EXPECT_EQ(a.lock->release(outer).outcome, ReleaseOutcome::not_owner);
}

}  // namespace
}  // namespace lockbench::redis

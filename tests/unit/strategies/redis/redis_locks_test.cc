#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

TEST_F(RedisLockTest, ATransactionTakesOneRoundTrip) {
  redis_.set_round_trip(40ms);
  const TimePoint start = clock_.now();
  client("redis-setnx-expire-multi").must_acquire();
  EXPECT_EQ(clock_.now() - start, 40ms);
}

TEST_F(RedisLockTest, AFailedRenewalChangesNothing) {
  for (const char* strategy : {"redis-setnx-expire", "redis-setnx-expire-multi", "redis-set-nx",
                               "redis-set-nx-check", "redis-set-nx-lua", "redis-watchdog",
                               "redis-watchdog-naive", "redis-fenced", "redis-reentrant"}) {
    RedisClient& a = client(strategy);
    const Lease lease = a.must_acquire(5s);
    const TimePoint was = lease.state->valid_until();
    redis_.fail(1, Failure::request_lost);
    EXPECT_EQ(a.lock->renew(lease, 9s).outcome, RenewOutcome::failed) << strategy;
    EXPECT_EQ(lease.state->valid_until(), was) << strategy;
    EXPECT_EQ(lease.state->lost_at(), std::nullopt) << strategy;
    redis_.erase("k");
  }
}

TEST_F(RedisLockTest, NeedsAnEndpoint) {
  for (const Endpoints& endpoints :
       {Endpoints{}, Endpoints{{"redis", {}}}, Endpoints{{"redis", {"nonsense"}}}}) {
    endpoints_ = endpoints;
    EXPECT_THROW(client("redis-setnx"), std::invalid_argument);
  }
}

TEST_F(RedisLockTest, WhatACrashLeavesEndsAfterADayIfKeysAreBounded) {
  options_.bounded_keys = true;
  redis_.fail(2, Failure::not_sent);
  EXPECT_EQ(client("redis-setnx-expire").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_.ttl("k"), 24h);
  redis_.erase("k");
  client("redis-setnx-expire").must_acquire(2s);
  EXPECT_EQ(redis_.ttl("k"), 2s);
}

TEST_F(RedisLockTest, IfMultiFailsTheOutcomeIsUnknown) {
  redis_.fail(1, Failure::rejected);
  EXPECT_EQ(client("redis-setnx-expire-multi").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_.value("k"), "1");
}

TEST_F(RedisLockTest, ACleanUpKeepsWhatTheClientHolds) {
  RedisClient& a = client("redis-set-nx-check");
  const Lease lease = a.must_acquire();
  redis_.fail(1, Failure::answer_lost);
  EXPECT_EQ(a.acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_.value("k"), lease.token);
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  redis_.fail(1, Failure::answer_lost);
  EXPECT_EQ(a.acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_.value("k"), std::nullopt) << "it holds nothing any more";
}

TEST_F(RedisLockTest, TheCleanUpKeepsAnotherClientsLock) {
  redis_.set("k", "another");
  redis_.fail(1, Failure::request_lost);
  EXPECT_EQ(client("redis-set-nx-lua").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_.value("k"), "another");
}

TEST_F(RedisLockTest, TheFirstOfABatchSendsTheScriptsSource) {
  RedisClient& a = client("redis-watchdog");
  const Lease one = a.must_acquire(9s);
  const AcquireResult two = a.lock->acquire({.key = "l", .ttl = 9s});
  ASSERT_TRUE(two.lease);
  commands();
  for (int restart = 0; restart < 2; ++restart) {
    renew_for(3s);
    EXPECT_EQ(commands(), (Commands{"EVAL renew_if_token 1 k " + one.token + " 9000",
                                    "EVALSHA renew_if_token 1 l " + two.lease->token + " 9000"}));
    redis_.forget_scripts();
  }
  EXPECT_EQ(one.state->lost_at(), std::nullopt);
}

TEST_F(RedisLockTest, TheNaiveWatchdogRenewsWhenAFifthOfTheTtlIsLeft) {
  const Lease lease = client("redis-watchdog-naive").must_acquire(10s);
  commands();
  renew_for(7900ms);
  EXPECT_EQ(commands(), Commands{});
  renew_for(100ms);
  EXPECT_EQ(commands(), Commands{"EXPIRE k 10"});
}

TEST_F(RedisLockTest, AReentrantLockCountsAndReportsTheRestOfTheTtl) {
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

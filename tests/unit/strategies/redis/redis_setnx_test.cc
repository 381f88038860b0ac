#include "tests/support/faulty_env.h"
#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

class RedisSetnx : public RedisLockTest {};

TEST_F(RedisSetnx, SendsSetnxAndDel) {
  RedisClient& a = client("redis-setnx");
  const Lease lease = a.must_acquire();
  EXPECT_EQ(commands(), (Commands{"SETNX k 1"}));
  EXPECT_TRUE(lease.token.empty());
  a.lock->release(lease);
  EXPECT_EQ(commands(), (Commands{"DEL k"}));
}

TEST_F(RedisSetnx, ALostAnswerLeavesItStuck) {
  redis_->fail(1, Failure::answer_lost);
  EXPECT_EQ(client("redis-setnx").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(commands(), (Commands{"SETNX k 1"}));  // nothing that could tell it from another's
  EXPECT_EQ(redis_->value("k"), "1");
}

TEST_F(RedisSetnx, EndsAfterADayIfKeysAreBounded) {
  options_.bounded_keys = true;
  for (const char* lock : {"redis-setnx", "redis-setnx-token"}) {
    RedisClient& a = client(lock);
    const Lease lease = a.must_acquire();
    const std::string value = lease.token.empty() ? "1" : lease.token;
    EXPECT_EQ(commands(), (Commands{"SET k " + value + " NX EX 86400"}));
    EXPECT_EQ(redis_->ttl("k"), 24h);
    EXPECT_EQ(client(lock).acquire().outcome, AcquireOutcome::refused);
    EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
    commands();
  }
}

class RedisSetnxToken : public RedisLockTest {};

TEST_F(RedisSetnxToken, SendsSetnxWithATokenAndAScriptThatChecksIt) {
  RedisClient& a = client("redis-setnx-token");
  const Lease lease = a.must_acquire();
  EXPECT_EQ(lease.token.size(), 32U);
  EXPECT_EQ(commands(), (Commands{"SETNX k " + lease.token}));
  EXPECT_EQ(redis_->ttl("k"), std::nullopt);
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  EXPECT_EQ(commands(), (Commands{"EVALSHA release_if_token 1 k " + lease.token,
                                  "EVAL release_if_token 1 k " + lease.token}));
}

class RedisSetnxExpire : public RedisLockTest {};

TEST_F(RedisSetnxExpire, SendsTwoStepsInWholeSecondsRoundedUp) {
  redis_->set_round_trip(40ms);
  RedisClient& a = client("redis-setnx-expire");
  const TimePoint start = clock_.now();
  const Lease lease = a.must_acquire(1500ms);
  EXPECT_EQ(commands(), (Commands{"SETNX k 1", "EXPIRE k 2"}));
  EXPECT_EQ(lease.state->valid_until(), start + 40ms + 2s);  // from before EXPIRE was sent
  a.lock->release(lease);
  EXPECT_EQ(commands(), (Commands{"DEL k"}));
}

TEST_F(RedisSetnxExpire, ARefusedClientSendsOnlyTheFirstStep) {
  client("redis-setnx-expire").must_acquire();
  commands();
  EXPECT_EQ(client("redis-setnx-expire").acquire().outcome, AcquireOutcome::refused);
  EXPECT_EQ(commands(), (Commands{"SETNX k 1"}));
}

TEST_F(RedisSetnxExpire, AFailureBetweenTheStepsIsUnknownAndLeavesItStuck) {
  for (const Failure failure : {Failure::not_sent, Failure::request_lost, Failure::rejected}) {
    RedisClient& a = client("redis-setnx-expire");
    redis_->fail(2, failure);
    const AcquireResult result = a.acquire();
    EXPECT_EQ(result.outcome, AcquireOutcome::unknown);
    EXPECT_FALSE(result.reason.empty());
    EXPECT_EQ(redis_->value("k"), "1");
    EXPECT_EQ(redis_->ttl("k"), std::nullopt);
    clock_.advance(24h);
    EXPECT_EQ(a.acquire().outcome, AcquireOutcome::refused);
    redis_->erase("k");
  }
}

TEST_F(RedisSetnxExpire, WhatACrashLeavesEndsAfterADayIfKeysAreBounded) {
  options_.bounded_keys = true;
  redis_->fail(2, Failure::not_sent);
  EXPECT_EQ(client("redis-setnx-expire").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_->ttl("k"), 24h);
  redis_->erase("k");
  client("redis-setnx-expire").must_acquire(2s);
  EXPECT_EQ(redis_->ttl("k"), 2s);
}

class RedisSetnxExpireMulti : public RedisLockTest {};

TEST_F(RedisSetnxExpireMulti, SendsOneTransaction) {
  redis_->set_round_trip(40ms);
  RedisClient& a = client("redis-setnx-expire-multi");
  const TimePoint start = clock_.now();
  const Lease lease = a.must_acquire(1500ms);
  EXPECT_EQ(commands(), (Commands{"MULTI", "SETNX k 1", "EXPIRE k 2", "EXEC"}));
  EXPECT_EQ(clock_.now() - start, 40ms);  // in one round trip
  EXPECT_EQ(lease.state->valid_until(), start + 2s);
  a.lock->release(lease);
  EXPECT_EQ(commands(), (Commands{"DEL k"}));
}

TEST_F(RedisSetnxExpireMulti, ARefusedClientExtendsTheHoldersTtl) {
  RedisClient &a = client("redis-setnx-expire-multi"), &b = client("redis-setnx-expire-multi");
  a.must_acquire(5s);
  clock_.advance(4s);
  EXPECT_EQ(b.acquire(30s).outcome, AcquireOutcome::refused);
  EXPECT_EQ(redis_->ttl("k"), 30s);
}

TEST_F(RedisSetnxExpireMulti, ATransactionThatDidNotReachTheServerTookNoEffect) {
  for (int n = 1; n <= 4; ++n) {
    redis_->fail(n, Failure::not_sent);
    EXPECT_EQ(client("redis-setnx-expire-multi").acquire().outcome, AcquireOutcome::failed);
    EXPECT_EQ(redis_->value("k"), std::nullopt);
  }
}

TEST_F(RedisSetnxExpireMulti, HalfATransactionIsNotSentOnANewConnection) {
  const StrategyOptions options;
  for (int n = 1; n <= 4; ++n) {
    SimEnv world(clock_);
    test::FaultyEnv env(world);
    env.drop_command(n);
    const auto lock = make_strategy(
        *find_strategy("redis-setnx-expire-multi"),
        {.endpoints = endpoints_, .options = options, .env = env, .services = services_});
    EXPECT_EQ(lock->acquire({.key = "k", .ttl = 1s}).outcome, AcquireOutcome::failed);
    EXPECT_EQ(commands(), Commands{});
  }
}

TEST_F(RedisSetnxExpireMulti, IfMultiFailsTheOutcomeIsUnknown) {
  redis_->fail(1, Failure::rejected);
  EXPECT_EQ(client("redis-setnx-expire-multi").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_->value("k"), "1");
}

TEST_F(RedisSetnxExpireMulti, AfterALostAnswerTheTtlEndsTheLock) {
  redis_->fail(4, Failure::answer_lost);
  EXPECT_EQ(client("redis-setnx-expire-multi").acquire(5s).outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_->ttl("k"), 5s);
}

}  // namespace
}  // namespace lockbench::redis

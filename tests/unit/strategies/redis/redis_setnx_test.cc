#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

class RedisSetnx : public RedisLockTest {};

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

TEST_F(RedisSetnxExpireMulti, IfMultiFailsTheOutcomeIsUnknown) {
  redis_->fail(1, Failure::rejected);
  EXPECT_EQ(client("redis-setnx-expire-multi").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_->value("k"), "1");
}

}  // namespace
}  // namespace lockbench::redis

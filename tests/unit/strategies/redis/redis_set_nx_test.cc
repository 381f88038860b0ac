#include <set>

#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

class RedisSetNx : public RedisLockTest {};

TEST_F(RedisSetNx, RoundsTheTtlUpToMilliseconds) {
  const TimePoint start = clock_.now();
  const Lease lease = client("redis-set-nx").must_acquire(1500us);
  EXPECT_EQ(commands(), (Commands{"SET k 1 NX PX 2"}));
  EXPECT_EQ(lease.state->valid_until(), start + 2ms);
}

class RedisSetNxCheck : public RedisLockTest {};

TEST_F(RedisSetNxCheck, SendsGetAndDelToRelease) {
  client("redis-set-nx-check");
  RedisClient& a = client("redis-set-nx-check");
  const Lease lease = a.must_acquire(2s);
  EXPECT_EQ(commands(), (Commands{"SET k " + lease.token + " NX PX 2000"}));
  EXPECT_TRUE(lease.token.ends_with(":1")) << lease.token;  // host:process:client
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  EXPECT_EQ(commands(), (Commands{"GET k", "DEL k"}));
}

TEST_F(RedisSetNxCheck, ReleasesItIfItChangesHandsBetweenTheTwoSteps) {
  RedisClient &a = client("redis-set-nx-check"), &b = client("redis-set-nx-check");
  const Lease lease = a.must_acquire(1s);
  before("DEL", [&] {
    clock_.advance(1s);
    b.must_acquire();
  });
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  EXPECT_EQ(redis_->value("k"), std::nullopt);
}

TEST_F(RedisSetNxCheck, ACleanUpKeepsWhatTheClientHolds) {
  RedisClient& a = client("redis-set-nx-check");
  const Lease lease = a.must_acquire();
  redis_->fail(1, Failure::answer_lost);
  EXPECT_EQ(a.acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_->value("k"), lease.token);
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  redis_->fail(1, Failure::answer_lost);
  EXPECT_EQ(a.acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_->value("k"), std::nullopt) << "it holds nothing any more";
}

class RedisSetNxLua : public RedisLockTest {};

TEST_F(RedisSetNxLua, EveryAcquisitionHasItsOwnToken) {
  std::set<std::string> tokens;
  for (int i = 0; i < 20; ++i) {
    RedisClient& a = client("redis-set-nx-lua");
    for (int round = 0; round < 20; ++round) {
      const Lease lease = a.must_acquire();
      EXPECT_EQ(redis_->value("k"), lease.token);
      EXPECT_TRUE(tokens.insert(lease.token).second) << lease.token;
      a.lock->release(lease);
    }
  }
}

TEST_F(RedisSetNxLua, ARenewalChecksTheTokenInOneStep) {
  RedisClient& a = client("redis-set-nx-lua");
  const Lease lease = a.must_acquire(1s);
  EXPECT_EQ(a.lock->renew(lease, 3s).outcome, RenewOutcome::renewed);
  commands();
  EXPECT_EQ(a.lock->renew(lease, 4s).outcome, RenewOutcome::renewed);
  EXPECT_EQ(commands(), (Commands{"EVALSHA renew_if_token 1 k " + lease.token + " 4000"}));
  redis_->set("k", "another");
  EXPECT_EQ(a.lock->renew(lease, 5s).outcome, RenewOutcome::not_owner);
  EXPECT_EQ(redis_->ttl("k"), std::nullopt);
  EXPECT_FALSE(lease.state->valid_at(clock_.now()));
}

TEST_F(RedisSetNxLua, TheCleanUpKeepsAnotherClientsLock) {
  redis_->set("k", "another");
  redis_->fail(1, Failure::request_lost);
  EXPECT_EQ(client("redis-set-nx-lua").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_->value("k"), "another");
}

}  // namespace
}  // namespace lockbench::redis

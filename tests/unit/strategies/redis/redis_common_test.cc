#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

TEST_F(RedisLockTest, AFailedRenewalChangesNothing) {
  for (const char* strategy : {"redis-setnx-expire", "redis-setnx-expire-multi", "redis-set-nx",
                               "redis-set-nx-check", "redis-set-nx-lua", "redis-watchdog",
                               "redis-watchdog-naive", "redis-fenced", "redis-reentrant"}) {
    RedisClient& a = client(strategy);
    const Lease lease = a.must_acquire(5s);
    const TimePoint was = lease.state->valid_until();
    redis_->fail(1, Failure::request_lost);
    EXPECT_EQ(a.lock->renew(lease, 9s).outcome, RenewOutcome::failed) << strategy;
    EXPECT_EQ(lease.state->valid_until(), was) << strategy;
    EXPECT_EQ(lease.state->lost_at(), std::nullopt) << strategy;
    redis_->erase("k");
  }
}

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

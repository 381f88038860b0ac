#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

/// What is sent, with its arguments, and how long the lease is valid: from before the command was
/// sent that sets the TTL, which is rounded up.
TEST_F(RedisLockTest, SendsWhatItsSourceSays) {
  const struct {
    const char* strategy;
    Commands acquire, release;  ///< $: the token
    Duration taken;
    Duration valid_for;  ///< max(): for ever
  } cases[] = {
      {"redis-setnx-token",
       {"SETNX k $"},
       {"EVALSHA release_if_token 1 k $", "EVAL release_if_token 1 k $"},
       40ms,
       Duration::max()},
      {"redis-setnx-expire", {"SETNX k 1", "EXPIRE k 2"}, {"DEL k"}, 80ms, 40ms + 2s},
      {"redis-setnx-expire-multi",
       {"MULTI", "SETNX k 1", "EXPIRE k 2", "EXEC"},
       {"DEL k"},
       40ms,
       2s},
      {"redis-set-nx", {"SET k 1 NX PX 1501"}, {"DEL k"}, 40ms, 1501ms},
      {"redis-set-nx-check", {"SET k $ NX PX 1501"}, {"GET k", "DEL k"}, 40ms, 1501ms},
  };
  redis_->set_round_trip(40ms);
  for (const auto& one : cases) {
    RedisClient& a = client(one.strategy);
    const TimePoint start = clock_.now();
    const Lease lease = a.must_acquire(1500500us);
    const auto with_token = [&](Commands commands) {
      for (std::string& command : commands) {
        const std::size_t at = command.find('$');
        if (at != std::string::npos) command.replace(at, 1, lease.token);
      }
      return commands;
    };
    const bool ends = one.valid_for != Duration::max();
    EXPECT_EQ(commands(), with_token(one.acquire)) << one.strategy;
    EXPECT_EQ(clock_.now() - start, one.taken) << one.strategy;
    EXPECT_EQ(lease.state->valid_until(), ends ? start + one.valid_for : TimePoint::max())
        << one.strategy;
    EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released) << one.strategy;
    EXPECT_EQ(commands(), with_token(one.release)) << one.strategy;
  }
}

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

TEST_F(RedisLockTest, EndsAfterADayIfKeysAreBounded) {
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

TEST_F(RedisLockTest, WhatACrashLeavesEndsAfterADayIfKeysAreBounded) {
  options_.bounded_keys = true;
  redis_->fail(2, Failure::not_sent);
  EXPECT_EQ(client("redis-setnx-expire").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_->ttl("k"), 24h);
  redis_->erase("k");
  client("redis-setnx-expire").must_acquire(2s);
  EXPECT_EQ(redis_->ttl("k"), 2s);
}

TEST_F(RedisLockTest, IfMultiFailsTheOutcomeIsUnknown) {
  redis_->fail(1, Failure::rejected);
  EXPECT_EQ(client("redis-setnx-expire-multi").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_->value("k"), "1");
}

TEST_F(RedisLockTest, ACleanUpKeepsWhatTheClientHolds) {
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

TEST_F(RedisLockTest, TheCleanUpKeepsAnotherClientsLock) {
  redis_->set("k", "another");
  redis_->fail(1, Failure::request_lost);
  EXPECT_EQ(client("redis-set-nx-lua").acquire().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_->value("k"), "another");
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
    redis_->forget_scripts();
  }
  EXPECT_EQ(one.state->lost_at(), std::nullopt);
}

TEST_F(RedisLockTest, TheNaiveWatchdogRenewsAnotherClientsLock) {
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


#include "tests/support/test_names.h"
#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

/// What every lock on one Redis must do.
class EveryRedisLock : public RedisLockTest, public testing::WithParamInterface<std::string_view> {
 protected:
  RedisClient& client() { return RedisLockTest::client(GetParam()); }
};

TEST_P(EveryRedisLock, IsGrantedToOneClientAfterTheOther) {
  RedisClient &a = client(), &b = client();
  const Lease lease = a.must_acquire();
  EXPECT_EQ(lease.key, "k");
  EXPECT_TRUE(lease.state->valid_at(clock_.now()));
  const AcquireResult taken = b.acquire();
  EXPECT_EQ(taken.outcome, AcquireOutcome::refused);
  EXPECT_EQ(taken.attempts, 1U);
  EXPECT_FALSE(taken.lease);
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  EXPECT_EQ(redis_->value("k"), std::nullopt);
  b.must_acquire();
}

TEST_P(EveryRedisLock, HoldsSeveralKeysAtOnce) {
  RedisClient& a = client();
  const Lease first = a.must_acquire();
  const AcquireResult second = a.lock->acquire({.key = "other", .ttl = 10s});
  ASSERT_EQ(second.outcome, AcquireOutcome::acquired);
  EXPECT_EQ(a.lock->release(first).outcome, ReleaseOutcome::released);
  EXPECT_EQ(redis_->value("k"), std::nullopt);
  EXPECT_NE(redis_->value("other"), std::nullopt);
  EXPECT_EQ(a.lock->release(*second.lease).outcome, ReleaseOutcome::released);
}

TEST_P(EveryRedisLock, ValidityEndsBeforeTheKeyExpires) {
  redis_->set_round_trip(80ms);
  RedisClient &a = client(), &b = client();
  const Lease lease = a.must_acquire(1500ms);
  const TimePoint valid_until = lease.state->valid_until();
  if (find_strategy(GetParam())->traits.expiry == Expiry::none) {
    EXPECT_EQ(valid_until, TimePoint::max());
    EXPECT_EQ(redis_->ttl("k"), std::nullopt);
    return;
  }
  // Until the last moment of validity no other client gets the lock.
  redis_->set_round_trip(0ms);
  clock_.advance_to(valid_until - 1ns);
  EXPECT_EQ(b.acquire(1s).outcome, AcquireOutcome::refused);
  clock_.advance_to(valid_until + 2s);
  EXPECT_FALSE(lease.state->valid_at(clock_.now()));
  b.must_acquire();
}

TEST_P(EveryRedisLock, PollsUntilItsDeadline) {
  RedisClient &a = client(), &b = client();
  a.must_acquire(1h);
  const TimePoint start = clock_.now();
  const AcquireResult result = b.acquire(10s, 250ms);
  EXPECT_EQ(result.outcome, AcquireOutcome::timed_out);
  EXPECT_EQ(result.attempts, 4U);
  EXPECT_EQ(clock_.now() - start, 250ms);
}

TEST_P(EveryRedisLock, IsGrantedWhenAPollFindsItFree) {
  RedisClient &a = client(), &b = client();
  const Lease lease = a.must_acquire();
  const TimePoint start = clock_.now();
  clock_.at(start + 130ms, [&] { a.lock->release(lease); });
  EXPECT_EQ(b.acquire(10s, 1s).outcome, AcquireOutcome::acquired);
  EXPECT_EQ(clock_.now() - start, 200ms);
}

TEST_P(EveryRedisLock, AStopEndsTheWait) {
  RedisClient &a = client(), &b = client();
  a.must_acquire(1h);
  std::stop_source stop;
  const TimePoint start = clock_.now();
  clock_.at(start + 130ms, [&] { stop.request_stop(); });
  EXPECT_EQ(b.acquire(10s, 1s, stop.get_token()).outcome, AcquireOutcome::abandoned);
  EXPECT_EQ(clock_.now() - start, 130ms);
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

TEST_P(EveryRedisLock, ALostAnswerIsUnknown) {
  RedisClient& a = client();
  for (const Failure failure : {Failure::request_lost, Failure::answer_lost}) {
    redis_->fail(1, failure);
    const AcquireResult result = a.acquire(10s, 1s);
    EXPECT_EQ(result.outcome, AcquireOutcome::unknown);
    EXPECT_FALSE(result.lease);
    EXPECT_NE(result.reason.find("fake:1"), std::string::npos) << result.reason;
    redis_->erase("k");
  }
}

TEST_P(EveryRedisLock, ReportsAFailedRelease) {
  RedisClient& a = client();
  const Lease lease = a.must_acquire();
  redis_->fail(1, Failure::request_lost);
  const ReleaseResult result = a.lock->release(lease);
  EXPECT_EQ(result.outcome, ReleaseOutcome::failed);
  EXPECT_NE(result.reason.find("fake:1"), std::string::npos) << result.reason;
  EXPECT_NE(redis_->value("k"), std::nullopt);
}

TEST_P(EveryRedisLock, SendsNothingBeforeTheFirstCall) {
  redis_->refuse_connections(true);
  RedisClient& a = client();
  const StoreResult<void> connected = a.lock->connect();
  ASSERT_FALSE(connected);
  EXPECT_NE(connected.error().message.find("fake:1"), std::string::npos);
  EXPECT_EQ(connected.error().message.find("hunter2"), std::string::npos);
  redis_->refuse_connections(false);
  EXPECT_TRUE(a.lock->connect());
  EXPECT_EQ(commands(), Commands{});
}

TEST_P(EveryRedisLock, ReportsEveryCommandToItsEnv) {
  RedisClient& a = client();
  const Lease lease = a.must_acquire();
  a.lock->release(lease);
  // The server does not know the script yet, so that the release sends a second command.
  const auto& seen = a.env.commands();
  const auto count = [&](const char* begins) {
    return std::count_if(seen.begin(), seen.end(),
                         [&](const std::string& line) { return line.starts_with(begins); });
  };
  EXPECT_EQ(count("before"), static_cast<std::ptrdiff_t>(commands().size()));
  EXPECT_EQ(count("after"), count("before"));
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

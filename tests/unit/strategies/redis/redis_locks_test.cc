#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

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

TEST_F(RedisLockTest, WithoutAFencingNumberThereIsNoLock) {
  for (const auto& [strategy, numbers] :
       {std::pair("redis-fenced", "k:fencing"), {"redis-queue", "k:numbers"}}) {
    redis_.set(numbers, "not a number");
    // Before the client that failed could clean up.
    redis_.on_arrival([&, name = strategy](const std::string& command) {
      if (command.find(" leave ") == std::string::npos) return;
      EXPECT_EQ(redis_.value("k"), std::nullopt) << name;
    });
    EXPECT_EQ(client(strategy).acquire().outcome, AcquireOutcome::failed) << strategy;
    EXPECT_EQ(redis_.value("k"), std::nullopt) << strategy;
    redis_.erase(numbers);
    RedisClient& next = client(strategy);
    EXPECT_EQ(next.lock->release(next.must_acquire()).outcome, ReleaseOutcome::released);
  }
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

TEST_F(RedisLockTest, AReentrantLockCountsAndReportsTheRestOfTheTtl) {
  RedisClient &a = client("redis-reentrant"), &b = client("redis-reentrant");
  const Lease outer = a.must_acquire(5s), inner = a.must_acquire(5s);
  const TimePoint start = clock_.now();
  EXPECT_EQ(a.lock->release(inner).outcome, ReleaseOutcome::released);
  EXPECT_EQ(b.acquire().outcome, AcquireOutcome::refused);
  clock_.advance(4950ms);
  // Less is left than a poll interval.
  EXPECT_EQ(b.acquire(5s, 1s).outcome, AcquireOutcome::acquired);
  EXPECT_EQ(clock_.now() - start, 5s);
  EXPECT_EQ(a.lock->release(outer).outcome, ReleaseOutcome::not_owner);
}

TEST_F(RedisLockTest, TheReleaseOfALostOuterLeaseLeavesTheLockTakenAnew) {
  for (const char* strategy : {"redis-reentrant", "redis-reentrant-notify"}) {
    RedisClient &a = client(strategy), &b = client(strategy);
    const Lease lost = a.must_acquire(2s);
    clock_.advance(3s);
    const Lease anew = a.must_acquire(10s), inner = a.must_acquire(10s);
    EXPECT_EQ(a.lock->release(lost).outcome, ReleaseOutcome::not_owner) << strategy;
    EXPECT_EQ(a.lock->release(inner).outcome, ReleaseOutcome::released);
    EXPECT_TRUE(anew.state->valid_at(clock_.now()));
    EXPECT_EQ(b.acquire().outcome, AcquireOutcome::refused) << strategy;
    EXPECT_EQ(a.lock->release(anew).outcome, ReleaseOutcome::released);
    EXPECT_EQ(redis_.value("k"), std::nullopt);
  }
}

TEST_F(RedisLockTest, ALeaseThatOnlyTheServerCountsIsReleasedWithTheOthers) {
  for (const bool lost_first : {true, false}) {
    RedisClient& a = client("redis-reentrant");
    redis_.set_round_trip(200ms);
    const Lease lost = a.must_acquire(2s);
    redis_.set_round_trip(0ms);
    clock_.advance(1850ms);  // over for the client; the server begins to count 100 ms later
    const Lease anew = a.must_acquire(10s);
    EXPECT_FALSE(lost.state->valid_at(clock_.now()));
    a.lock->release(lost_first ? lost : anew);
    a.lock->release(lost_first ? anew : lost);
    EXPECT_EQ(redis_.value("k"), std::nullopt) << lost_first;
  }
}

TEST_F(RedisLockTest, AnInnerAcquisitionSetsTheValidityOfTheOuterLeaseToo) {
  RedisClient& a = client("redis-reentrant");
  const TimePoint start = clock_.now();
  const Lease outer = a.must_acquire(10s);
  clock_.advance(1s);
  const Lease inner = a.must_acquire(2s);
  EXPECT_EQ(redis_.ttl("k"), 2s);
  EXPECT_EQ(outer.state->valid_until(), start + 3s) << "the store keeps the lock no longer";
  clock_.advance(1s);
  EXPECT_EQ(a.lock->release(inner).outcome, ReleaseOutcome::released);
  EXPECT_EQ(redis_.ttl("k"), 2s);
  EXPECT_EQ(outer.state->valid_until(), start + 4s);
  clock_.advance(2s);
  const Lease next = a.must_acquire(10s);
  EXPECT_FALSE(outer.state->valid_at(clock_.now())) << "it ended before";
  EXPECT_TRUE(next.state->valid_at(clock_.now()));
}

TEST_F(RedisLockTest, AnInnerRequestWithoutAnAnswerMayHaveShortenedTheLock) {
  RedisClient& a = client("redis-reentrant");
  const Lease outer = a.must_acquire(10s);
  redis_.fail(1, Failure::not_sent);
  EXPECT_EQ(a.acquire(2s).outcome, AcquireOutcome::failed);
  EXPECT_EQ(outer.state->valid_until(), clock_.now() + 10s);
  redis_.fail(1, Failure::answer_lost);
  EXPECT_EQ(a.acquire(2s).outcome, AcquireOutcome::unknown);
  EXPECT_EQ(redis_.ttl("k"), 2s);
  EXPECT_EQ(outer.state->valid_until(), clock_.now() + 2s);

  const Lease inner = a.must_acquire(2s);
  EXPECT_EQ(a.lock->renew(outer, 10s).outcome, RenewOutcome::renewed);
  redis_.fail(2, Failure::answer_lost);  // the first one is told that the script is not known
  EXPECT_EQ(a.lock->release(inner).outcome, ReleaseOutcome::failed);
  EXPECT_EQ(redis_.ttl("k"), 2s);
  EXPECT_EQ(outer.state->valid_until(), clock_.now() + 2s);
}

/// Notes to which server, and with which timeout, each connection is made.
class NotingServer : public FakeRedis {
 public:
  using FakeRedis::FakeRedis;
  std::unique_ptr<Connection> make(const Endpoint& endpoint, const Timeouts& timeouts,
                                   Env& env) override {
    connections.push_back(name_of(endpoint) + " " + format_duration(timeouts));
    return FakeRedis::make(endpoint, timeouts, env);
  }
  std::unique_ptr<Subscriber> make_subscriber(const Endpoint& endpoint, const Timeouts& timeouts,
                                              Env& env) override {
    subscribers.push_back(name_of(endpoint));
    return FakeRedis::make_subscriber(endpoint, timeouts, env);
  }

  std::vector<std::string> connections, subscribers;

 private:
  static std::string name_of(const Endpoint& endpoint) {
    return endpoint.user + "@" + endpoint.display() + "/" + std::to_string(endpoint.database);
  }
};

class RedisServicesTest : public FakeServersTest<NotingServer> {
 protected:
  RedisClient& client_of(std::string_view strategy, const std::string& url) {
    endpoints_["redis"] = endpoints_["redis-replicated"] = {url};
    return client(strategy);
  }
  /// The connections that renewals use.
  std::vector<std::string> renewing(RedisClient& by, Duration ttl) {
    servers_->connections.clear();
    by.must_acquire(ttl);
    return servers_->connections;
  }
};

TEST_F(RedisServicesTest, ARenewalUsesTheServerDatabaseAndUserOfItsLock) {
  const std::vector<std::string> urls{"redis://fake:1", "redis://fake:1/1", "redis://fake:2",
                                      "redis://ann:hunter2@fake:1"};
  const std::vector<std::string> names{"@fake:1/0 3s", "@fake:1/1 3s", "@fake:2/0 3s",
                                       "ann@fake:1/0 3s"};
  for (std::size_t i = 0; i < urls.size(); ++i) {
    EXPECT_THAT(renewing(client_of("redis-watchdog", urls[i]), 10s),
                testing::ElementsAre(names[i]));
    servers_->erase("k");
    EXPECT_THAT(renewing(client_of("redis-watchdog", urls[i]), 10s),
                testing::Not(testing::Contains("@fake:1/0 3s")))
        << "they share one: this is the second client's own";
    servers_->erase("k");
  }
}

TEST_F(RedisServicesTest, ARenewalHasTheTimeoutOfItsOwnLease) {
  RedisClient& a = client_of("redis-watchdog", "redis://fake:1");
  EXPECT_THAT(renewing(a, 10s), testing::ElementsAre("@fake:1/0 3s"));
  servers_->erase("k");
  EXPECT_THAT(renewing(a, 100ms), testing::ElementsAre("@fake:1/0 20ms"));
  servers_->erase("k");
  EXPECT_THAT(renewing(a, 90ms), testing::IsEmpty()) << "few channels for many TTLs";
}

TEST_F(RedisServicesTest, ARenewalThatWaitsForReplicasIsNotThatOfALockThatDoesNot) {
  options_.wait_replicas = 1;
  for (const char* strategy : {"redis-reentrant-notify", "redis-reentrant-wait"}) {
    EXPECT_THAT(renewing(client_of(strategy, "redis://fake:1"), 10s),
                testing::Contains("@fake:1/0 3s"))
        << strategy;
    servers_->erase("k");
  }
}

TEST_F(RedisServicesTest, EachServerHasASubscriberOfItsOwn) {
  for (const char* url : {"redis://fake:1", "redis://fake:2"}) {
    RedisClient& holder = client_of("redis-reentrant-notify", url);
    RedisClient& waiter = client_of("redis-reentrant-notify", url);
    const Lease held = holder.must_acquire(10s);
    EXPECT_EQ(waiter.acquire(10s, 50ms).outcome, AcquireOutcome::timed_out);
    EXPECT_EQ(holder.lock->release(held).outcome, ReleaseOutcome::released);
  }
  EXPECT_THAT(servers_->subscribers, testing::ElementsAre("@fake:1/0", "@fake:2/0"));
}

/// Both variants.
class RedisGetset : public RedisLockTest, public testing::WithParamInterface<const char*> {
 protected:
  RedisClient& client() { return RedisLockTest::client(GetParam()); }
  bool compares() const { return GetParam() == std::string_view("redis-getset-cas"); }

  /// Leaves an expired lock behind.
  void leave_expired() {
    expired_ = wall_milliseconds(-5s);
    redis_.set("k", expired_);
  }

  std::string expired_;
};

TEST_P(RedisGetset, TheValueIsTheExpiryByTheClientsClock) {
  RedisClient& a = client();
  a.env.skew_wall_clock(90s);
  const TimePoint start = clock_.now();
  const Lease lease = a.must_acquire(2s);
  EXPECT_EQ(lease.token, wall_milliseconds(92s));
  EXPECT_EQ(commands(), (Commands{"SETNX k " + lease.token}));
  EXPECT_EQ(redis_.ttl("k"), std::nullopt);
  EXPECT_EQ(lease.state->valid_until(), start + 2s);
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  EXPECT_EQ(commands(), (Commands{"DEL k"}));
}

TEST_P(RedisGetset, ARefusedClientOnlyReadsTheValue) {
  const Lease lease = client().must_acquire();
  commands();
  clock_.advance(10s);  // exactly the end, which is not past it
  RedisClient& b = client();
  EXPECT_EQ(b.acquire().outcome, AcquireOutcome::refused);
  EXPECT_EQ(commands(), (Commands{"SETNX k " + wall_milliseconds(10s), "GET k"}));
  EXPECT_EQ(redis_.value("k"), lease.token);
}

TEST_P(RedisGetset, TakesOverAnExpiredLock) {
  redis_.set_round_trip(40ms);
  leave_expired();
  RedisClient& a = client();
  const TimePoint start = clock_.now();
  const Lease lease = a.must_acquire(2s);
  const auto sent = commands();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[1], "GET k");
  EXPECT_EQ(sent[2], "GETSET k " + lease.token);
  EXPECT_EQ(redis_.value("k"), lease.token);
  EXPECT_EQ(lease.state->valid_until(), start + 80ms + 2s);  // from before GETSET was sent
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
}

TEST_P(RedisGetset, AValueThatIsNotATimeNeverExpires) {
  for (const char* value : {"", "another", "12 ", "1e3"}) {
    redis_.set("k", value);
    EXPECT_EQ(client().acquire().outcome, AcquireOutcome::refused) << value;
    EXPECT_EQ(redis_.value("k"), value);
  }
}

TEST_P(RedisGetset, RetriesAtOnceIfTheKeyIsGone) {
  client().must_acquire();
  commands();
  before("GET", [&] { redis_.erase("k"); });
  RedisClient& b = client();
  const Lease lease = b.must_acquire();
  EXPECT_EQ(commands(), (Commands{"SETNX k " + lease.token, "GET k", "SETNX k " + lease.token}));
  EXPECT_TRUE(b.env.waits().empty());
}

TEST_P(RedisGetset, LimitsSuchRetries) {
  redis_.on_arrival([&](const std::string& command) {
    if (command.starts_with("SETNX")) redis_.set("k", "another");
    if (command.starts_with("GET")) redis_.erase("k");
  });
  EXPECT_EQ(client().acquire().outcome, AcquireOutcome::refused);
  const auto sent = commands();
  EXPECT_EQ(std::count(sent.begin(), sent.end(), "GET k"), 3);
}

TEST_P(RedisGetset, ALoserOfTheRaceRewritesTheWinnersExpiry) {
  leave_expired();
  RedisClient &a = client(), &b = client();
  Lease winner;
  before("GETSET", [&] { winner = a.must_acquire(2s); });
  EXPECT_EQ(b.acquire(30s).outcome, AcquireOutcome::refused);
  EXPECT_EQ(winner.token, wall_milliseconds(2s));
  EXPECT_EQ(redis_.value("k"), wall_milliseconds(30s));
}

TEST_P(RedisGetset, AFastClockWinsTheRaceUnlessTheValueIsCompared) {
  leave_expired();
  RedisClient &a = client(), &b = client();
  b.env.skew_wall_clock(11s);
  Lease winner;
  before("GETSET", [&] { winner = a.must_acquire(10s); });
  const AcquireResult result = b.acquire(10s);
  EXPECT_TRUE(winner.state->valid_at(clock_.now()));
  EXPECT_EQ(result.outcome, compares() ? AcquireOutcome::refused : AcquireOutcome::acquired);
}

TEST_P(RedisGetset, HandlesAKeyDeletedBetweenGetAndGetset) {
  leave_expired();
  before("GETSET", [&] { redis_.erase("k"); });
  EXPECT_EQ(client().acquire().outcome,
            compares() ? AcquireOutcome::refused : AcquireOutcome::acquired);
}

TEST_P(RedisGetset, AnyStepCanFail) {
  for (int n = 1; n <= 3; ++n) {
    leave_expired();
    redis_.fail(n, Failure::not_sent);
    EXPECT_EQ(client().acquire().outcome, AcquireOutcome::failed) << n;
    EXPECT_EQ(redis_.value("k"), expired_);
    // The second command, GET, changes nothing: without its answer the lock is still not held.
    redis_.fail(n, Failure::answer_lost);
    EXPECT_EQ(client().acquire().outcome, n == 2 ? AcquireOutcome::failed : AcquireOutcome::unknown)
        << n;
  }
}

INSTANTIATE_TEST_SUITE_P(, RedisGetset, testing::Values("redis-getset", "redis-getset-cas"),
                         [](const auto& tested) {
                           return std::string_view(tested.param).ends_with("cas") ? "cas" : "plain";
                         });

}  // namespace
}  // namespace lockbench::redis

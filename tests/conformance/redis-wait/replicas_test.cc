#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "strategies/observer.h"
#include "strategies/registry.h"
#include "strategies/renewal.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/redis-wait/replicated_store.h"

namespace lockbench::test {
namespace {

/// Enough for replicas that answer.
inline constexpr milliseconds kBound{1000};

inline StrategyOptions within(Duration bound, std::optional<int> replicas = std::nullopt) {
  StrategyOptions options;
  options.wait_timeout = bound;
  options.wait_replicas = replicas;
  return options;
}

/// One group for all; every replica follows when a test begins.
class Replicas : public testing::Test {
 protected:
  Replicas() : store_(breakable_store()) {
    for (std::size_t i = 0; i < kReplicas; ++i) must(store_.group().replica(i).thaw());
    store_.settle();
    store_.clear();
  }
  ~Replicas() override {
    for (std::size_t i = 0; i < kReplicas; ++i) (void)store_.group().replica(i).thaw();
  }

  static ReplicatedStore& breakable_store() {
    static ReplicatedStore tested;
    return tested;
  }

  bool is_on(testbed::Server& server, const std::string& key) {
    return RedisProbe(server.port()).exists(key);
  }
  testbed::Server& primary() { return store_.group().primary(); }
  testbed::Server& replica(std::size_t number) { return store_.group().replica(number); }

  ReplicatedStore& store_;
};

const Descriptor& redis_wait() { return *find_strategy("redis-wait"); }

class Acknowledgements : public StrategyObserver {
 public:
  struct Told {
    Duration taken{};
    int acknowledged = 0, wanted = 0;
  };
  void on_acknowledged(Duration taken, int acknowledged, int wanted) override {
    const std::scoped_lock lock(mutex_);
    told_.push_back({taken, acknowledged, wanted});
  }
  std::vector<Told> told() const {
    const std::scoped_lock lock(mutex_);
    return told_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Told> told_;
};

TEST_F(Replicas, HaveTheLockOnceItIsGranted) {
  Bench bench(redis_wait(), store_, within(kPatience));
  const auto client = bench.client();
  for (int i = 0; i < 50; ++i) {
    const std::string key = fmt::format("{}:{}", bench.key(), i);
    const AcquireResult held = client->try_once(key);
    ASSERT_TRUE(held.lease) << unexpected(held, AcquireOutcome::acquired);
    for (std::size_t r = 0; r < kReplicas; ++r) {
      EXPECT_EQ(RedisProbe(replica(r).port()).get(key), held.lease->token);
    }
  }
}

TEST_F(Replicas, OneThatIsFrozenMeansRefusalWithinTheBound) {
  Bench bench(redis_wait(), store_, within(kBound));
  const auto listener = std::make_shared<Acknowledgements>();
  bench.services().provide<StrategyObserver>(listener);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  must(replica(1).freeze());
  const TimePoint begin = client->now();
  // A wait would not help either: it is asked for, and not made use of.
  const AcquireResult refused = client->acquire(bench.key(), patience());
  const Duration taken = client->now() - begin;
  EXPECT_EQ(refused.outcome, AcquireOutcome::refused) << refused.reason;
  EXPECT_FALSE(refused.lease);
  EXPECT_GE(taken, kBound);
  EXPECT_FALSE(is_on(primary(), bench.key())) << "it was not given back";
  const auto told = listener->told();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].acknowledged, kReplicas);
  EXPECT_EQ(told[1].acknowledged, kReplicas - 1);
  EXPECT_EQ(told[1].wanted, kReplicas);
  EXPECT_GE(told[1].taken, kBound);

  must(replica(1).thaw());
  store_.settle();
  const AcquireResult again = client->try_once(bench.key());
  ASSERT_TRUE(again.lease) << unexpected(again, AcquireOutcome::acquired);
  EXPECT_EQ(client->release(*again.lease), ReleaseOutcome::released);
}

TEST_F(Replicas, AreNotAllNeededWhereFewerAreAskedFor) {
  Bench bench(redis_wait(), store_, within(kPatience, 1));
  const auto client = bench.client();
  must(replica(0).freeze());
  const AcquireResult held = client->try_once(bench.key());
  ASSERT_TRUE(held.lease) << unexpected(held, AcquireOutcome::acquired);
  EXPECT_TRUE(is_on(replica(1), bench.key()));
  must(replica(1).freeze());
  Bench impatient(redis_wait(), url_of(primary().port()), within(kBound, 1));
  EXPECT_EQ(impatient.client()->try_once("lockbench:other").outcome, AcquireOutcome::refused);
}

TEST_F(Replicas, AreNotWaitedForByThoseWhoDoNotHaveTheLock) {
  Bench bench(redis_wait(), store_, within(kPatience));
  const auto holder = bench.client();
  const auto loser = bench.client();
  warm_up(*loser, bench.key());
  ASSERT_TRUE(holder->try_once(bench.key()).lease);
  must(replica(0).freeze());
  loser->trace().take();
  EXPECT_EQ(loser->try_once(bench.key()).outcome, AcquireOutcome::refused);
  EXPECT_EQ(names_of(loser->trace().take()), std::vector<std::string>{"SET"});
}

TEST_F(Replicas, MustKnowOfARenewalToo) {
  Bench bench(redis_wait(), store_, within(kBound));
  const auto client = bench.client();
  const AcquireResult held = client->try_once(bench.key());
  ASSERT_TRUE(held.lease);
  const TimePoint was = held.lease->state->valid_until();
  must(replica(0).freeze());
  EXPECT_EQ(client->lock().renew(*held.lease, 2 * kLongTtl).outcome, RenewOutcome::failed);
  EXPECT_EQ(held.lease->state->valid_until(), was) << "a replica would let it go earlier";
  must(replica(0).thaw());
  store_.settle();
  EXPECT_EQ(client->lock().renew(*held.lease, 2 * kLongTtl).outcome, RenewOutcome::renewed);
  EXPECT_GT(held.lease->state->valid_until(), was);
}

/// Ends the request when the lock was taken and before anybody waits for replicas.
class StopsAfterSet : public ForwardingEnv {
 public:
  StopsAfterSet(Env& inner, std::stop_source& stop) : ForwardingEnv(inner), stop_(stop) {}
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override {
    if (command.name == "SET") stop_.request_stop();
    return ForwardingEnv::after_command(command, end);
  }

 private:
  std::stop_source& stop_;
};

TEST_F(Replicas, HaveNotAcknowledgedWhatAnotherConnectionWrote) {
  // After a stop the next command needs a new connection, on which WAIT has nothing to wait for.
  const auto world = make_system_env(1);
  std::stop_source stop;
  StopsAfterSet env(*world, stop);
  Services services;
  const Endpoints endpoints{{"redis", {url_of(primary().port())}}};
  const StrategyOptions options = within(kBound, kReplicas);
  const auto lock = make_strategy(
      redis_wait(),
      Context{.endpoints = endpoints, .options = options, .env = env, .services = services});
  ASSERT_TRUE(lock->connect());
  for (std::size_t i = 0; i < kReplicas; ++i) must(replica(i).freeze());
  const AcquireResult result = lock->acquire({.key = "lockbench:stopped",
                                              .ttl = kLongTtl,
                                              .deadline = TimePoint::max(),
                                              .stop = stop.get_token()});
  EXPECT_NE(result.outcome, AcquireOutcome::acquired) << "no replica has it";
  EXPECT_FALSE(result.lease);
  EXPECT_FALSE(is_on(primary(), "lockbench:stopped"));
}

TEST_F(Replicas, WithoutTheirNumberNothingIsGranted) {
  const auto env = make_system_env(1);
  Services services;
  const Endpoints endpoints{{"redis", {url_of(primary().port())}}};
  const StrategyOptions options = within(kBound);
  const auto lock = make_strategy(
      redis_wait(),
      Context{.endpoints = endpoints, .options = options, .env = *env, .services = services});
  const auto connected = lock->connect();
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().message,
            fmt::format("127.0.0.1:{}: the number of replicas to wait for is not given: set "
                        "--wait-replicas",
                        primary().port()));
  EXPECT_EQ(lock->acquire({.key = "lockbench:untold", .ttl = kLongTtl}).outcome,
            AcquireOutcome::failed);
  EXPECT_TRUE(store_.keys().empty());
}

/// Redisson's rule: all replicas are waited for, and one is enough.
class ReentrantWait : public Replicas {
 protected:
  void freeze(std::initializer_list<std::size_t> replicas) {
    for (const std::size_t number : replicas) must(replica(number).freeze());
  }
  void thaw_all() {
    for (std::size_t number = 0; number < kReplicas; ++number) must(replica(number).thaw());
    store_.settle();
  }

  Bench bench_{*find_strategy("redis-reentrant-wait"), store_, unrenewed(within(kBound))};
  std::unique_ptr<Client> client_ = bench_.client();
};

TEST_F(ReentrantWait, OneReplicaIsEnoughButAllAreWaitedFor) {
  warm_up(*client_, bench_.key());
  freeze({1});
  const TimePoint begin = client_->now();
  const AcquireResult held = client_->try_once(bench_.key());
  ASSERT_TRUE(held.lease) << unexpected(held, AcquireOutcome::acquired);
  EXPECT_GE(client_->now() - begin, kBound);
  EXPECT_TRUE(is_on(replica(0), bench_.key()));
  EXPECT_EQ(client_->release(*held.lease), ReleaseOutcome::released);
}

TEST_F(ReentrantWait, WithoutAnyTheLockIsRefusedAndGivenBack) {
  warm_up(*client_, bench_.key());
  freeze({0, 1});
  const AcquireResult refused = client_->acquire(bench_.key(), patience());
  EXPECT_EQ(refused.outcome, AcquireOutcome::refused) << refused.reason;
  EXPECT_FALSE(is_on(primary(), bench_.key()));
  thaw_all();
  const AcquireResult held = client_->try_once(bench_.key());
  ASSERT_TRUE(held.lease) << unexpected(held, AcquireOutcome::acquired);
  EXPECT_EQ(client_->release(*held.lease), ReleaseOutcome::released);
}

TEST_F(ReentrantWait, ARefusedReentryLeavesTheFirstGrant) {
  const AcquireResult held = client_->try_once(bench_.key());
  ASSERT_TRUE(held.lease) << unexpected(held, AcquireOutcome::acquired);
  freeze({0, 1});
  EXPECT_EQ(client_->try_once(bench_.key()).outcome, AcquireOutcome::refused);
  thaw_all();
  EXPECT_TRUE(bench_.is_held());
  EXPECT_EQ(client_->release(*held.lease), ReleaseOutcome::released);
  EXPECT_FALSE(bench_.is_held()) << "it is counted once too often";
}

TEST_F(ReentrantWait, AReleaseThatNoReplicaKnowsOfFailsAndFrees) {
  const AcquireResult held = client_->try_once(bench_.key());
  ASSERT_TRUE(held.lease) << unexpected(held, AcquireOutcome::acquired);
  freeze({0, 1});
  const ReleaseResult released = client_->lock().release(*held.lease);
  EXPECT_EQ(released.outcome, ReleaseOutcome::failed);
  EXPECT_NE(released.reason.find("0 of 2 replicas acknowledged"), std::string::npos)
      << released.reason;
  EXPECT_FALSE(is_on(primary(), bench_.key()));
}

class FailedRenewals : public StrategyObserver {
 public:
  void on_renewal(const RenewalReport& report) override {
    if (report.outcome == RenewalAnswer::failed) ++count;
  }
  std::atomic<int> count = 0;
};

TEST_F(ReentrantWait, ATimersRenewalCountsOnceAReplicaKnowsOfIt) {
  StrategyOptions options = within(kBound);
  options.renew = RenewPolicy{.kind = RenewPolicy::Kind::every, .period = milliseconds(20)};
  Bench bench(*find_strategy("redis-reentrant-wait"), store_, options);
  const auto failed = std::make_shared<FailedRenewals>();
  bench.services().provide<StrategyObserver>(failed);
  const auto client = bench.client();
  const AcquireResult held = client->try_once(bench.key());
  ASSERT_TRUE(held.lease) << unexpected(held, AcquireOutcome::acquired);
  const auto valid_until = [&] { return held.lease->state->valid_until(); };
  EXPECT_TRUE(eventually([&, first = valid_until()] { return valid_until() > first; }));
  freeze({0, 1});
  EXPECT_TRUE(eventually([&] { return failed->count >= 1; }));
  const TimePoint was = valid_until();
  EXPECT_TRUE(eventually([&] { return failed->count >= 2; }));
  EXPECT_EQ(valid_until(), was);
  thaw_all();
  EXPECT_TRUE(eventually([&] { return valid_until() > was; }));
  EXPECT_EQ(client->release(*held.lease), ReleaseOutcome::released);
}

}  // namespace

}  // namespace lockbench::test

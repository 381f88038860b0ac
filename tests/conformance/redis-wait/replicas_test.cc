#include <gtest/gtest.h>

#include "strategies/observer.h"
#include "strategies/registry.h"
#include "strategies/renewal.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/redis-wait/replicated_store.h"

namespace lockbench::test {
namespace {

/// Long enough for replicas that answer.
constexpr milliseconds kBound{1000};

StrategyOptions within(Duration bound, std::optional<int> replicas = std::nullopt) {
  return {.wait_replicas = replicas, .wait_timeout = bound};
}

/// One group for all tests; every replica follows at the start of each.
class Replicas : public testing::Test {
 protected:
  Replicas() : store_(breakable_store()) {
    thaw_all();
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
  void freeze(std::initializer_list<std::size_t> replicas) {
    for (const std::size_t number : replicas) must(replica(number).freeze());
  }
  void thaw_all() {
    for (std::size_t number = 0; number < kReplicas; ++number) must(replica(number).thaw());
    store_.settle();
  }

  ReplicatedStore& store_;
};

const Descriptor& redis_wait() { return *find_strategy("redis-wait"); }

class Listener : public StrategyObserver {
 public:
  struct Told {
    Duration taken{};
    int acknowledged = 0, wanted = 0;
  };
  void on_acknowledged(Duration taken, int acknowledged, int wanted) override {
    const std::scoped_lock lock(mutex_);
    told_.push_back({taken, acknowledged, wanted});
  }
  void on_renewal(const RenewalReport& report) override {
    if (report.outcome == RenewalAnswer::failed) ++failed_renewals;
  }
  std::vector<Told> told() const {
    const std::scoped_lock lock(mutex_);
    return told_;
  }
  std::atomic<int> failed_renewals = 0;

 private:
  mutable std::mutex mutex_;
  std::vector<Told> told_;
};

TEST_F(Replicas, OneThatIsFrozenMeansRefusalWithinTheBound) {
  Bench bench(redis_wait(), store_, within(kBound));
  const auto listener = std::make_shared<Listener>();
  bench.services().provide<StrategyObserver>(listener);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  freeze({1});
  const TimePoint begin = client->now();
  // Waiting would not help, so the patience is not used.
  const AcquireResult refused = client->acquire(bench.key(), patience());
  const Duration taken = client->now() - begin;
  EXPECT_EQ(refused.outcome, AcquireOutcome::refused) << refused.reason;
  EXPECT_NE(refused.reason.find("1 of 2 replicas acknowledged"), std::string::npos);
  EXPECT_FALSE(refused.lease);
  EXPECT_GE(taken, kBound);
  EXPECT_FALSE(is_on(primary(), bench.key())) << "it was not given back";
  const auto told = listener->told();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].acknowledged, kReplicas);
  EXPECT_EQ(told[1].acknowledged, kReplicas - 1);
  EXPECT_EQ(told[1].wanted, kReplicas);
  EXPECT_GE(told[1].taken, kBound);

  thaw_all();
  const Lease again = granted(client->try_once(bench.key()));
  EXPECT_EQ(client->release(again), ReleaseOutcome::released);
}

TEST_F(Replicas, AreNotAllNeededWhereFewerAreAskedFor) {
  Bench bench(redis_wait(), store_, within(kPatience, 1));
  const auto client = bench.client();
  freeze({0});
  const Lease held = granted(client->try_once(bench.key()));
  EXPECT_TRUE(is_on(replica(1), bench.key()));
  freeze({1});
  Bench impatient(redis_wait(), url_of(primary().port()), within(kBound, 1));
  EXPECT_EQ(impatient.client()->try_once("lockbench:other").outcome, AcquireOutcome::refused);
}

TEST_F(Replicas, AreNotWaitedForByThoseWhoDoNotHaveTheLock) {
  Bench bench(redis_wait(), store_, within(kPatience));
  const auto holder = bench.client(), loser = bench.client();
  warm_up(*loser, bench.key());
  ASSERT_TRUE(holder->try_once(bench.key()).lease);
  freeze({0});
  loser->trace().take();
  const AcquireResult refused = loser->try_once(bench.key());
  EXPECT_EQ(refused.outcome, AcquireOutcome::refused);
  EXPECT_EQ(refused.reason, "") << "contention is no failure";
  EXPECT_EQ(names_of(loser->trace().take()), std::vector<std::string>{"SET"});
}

TEST_F(Replicas, MustKnowOfARenewalToo) {
  HeldBench bench(kLongTtl, redis_wait(), store_, within(kBound));
  const TimePoint was = bench.held.state->valid_until();
  freeze({0});
  EXPECT_EQ(bench.holder->lock().renew(bench.held, 2 * kLongTtl).outcome, RenewOutcome::failed);
  EXPECT_EQ(bench.held.state->valid_until(), was) << "a replica would let it go earlier";
  thaw_all();
  EXPECT_EQ(bench.holder->lock().renew(bench.held, 2 * kLongTtl).outcome, RenewOutcome::renewed);
  EXPECT_GT(bench.held.state->valid_until(), was);
}

/// Stops the request after the lock was taken, before the wait for replicas.
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
  // After a stop the next command uses a new connection, on which WAIT has nothing to wait for.
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
  freeze({0, 1});
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
            fmt::format("127.0.0.1:{}: set --wait-replicas, the number of replicas to wait for",
                        primary().port()));
  EXPECT_EQ(lock->acquire({.key = "lockbench:untold", .ttl = kLongTtl}).outcome,
            AcquireOutcome::failed);
  EXPECT_TRUE(store_.keys().empty());
}

/// Redisson's rule: wait for all replicas, but one is enough.
class ReentrantWait : public Replicas {
 protected:
  Bench bench_{*find_strategy("redis-reentrant-wait"), store_, unrenewed(within(kBound))};
  std::unique_ptr<Client> client_ = bench_.client();
};

TEST_F(ReentrantWait, OneReplicaIsEnoughButAllAreWaitedFor) {
  warm_up(*client_, bench_.key());
  freeze({1});
  const TimePoint begin = client_->now();
  const Lease held = granted(client_->try_once(bench_.key()));
  EXPECT_GE(client_->now() - begin, kBound);
  EXPECT_TRUE(is_on(replica(0), bench_.key()));
  EXPECT_EQ(client_->release(held), ReleaseOutcome::released);
}

TEST_F(ReentrantWait, ARefusedReentryLeavesTheFirstGrant) {
  const Lease held = granted(client_->try_once(bench_.key()));
  freeze({0, 1});
  constexpr seconds kShorter{60};
  EXPECT_EQ(client_->try_once(bench_.key(), kShorter).outcome, AcquireOutcome::refused);
  thaw_all();
  EXPECT_TRUE(bench_.is_held());
  EXPECT_LT(held.state->valid_until(), client_->now() + kShorter) << "it has set a shorter TTL";
  EXPECT_EQ(client_->release(held), ReleaseOutcome::released);
  EXPECT_FALSE(bench_.is_held()) << "it is counted once too often";
}

TEST_F(ReentrantWait, AReleaseThatNoReplicaKnowsOfFailsAndFrees) {
  const Lease held = granted(client_->try_once(bench_.key()));
  freeze({0, 1});
  const ReleaseResult released = client_->lock().release(held);
  EXPECT_EQ(released.outcome, ReleaseOutcome::failed);
  EXPECT_NE(released.reason.find("0 of 2 replicas acknowledged"), std::string::npos)
      << released.reason;
  EXPECT_FALSE(is_on(primary(), bench_.key()));
}

TEST_F(ReentrantWait, ATimersRenewalCountsOnceAReplicaKnowsOfIt) {
  StrategyOptions options = renewed_every(milliseconds(20));
  options.wait_timeout = kBound;
  Bench bench(*find_strategy("redis-reentrant-wait"), store_, options);
  const auto listener = std::make_shared<Listener>();
  bench.services().provide<StrategyObserver>(listener);
  const auto client = bench.client();
  const Lease held = granted(client->try_once(bench.key()));
  const auto valid_until = [&] { return held.state->valid_until(); };
  EXPECT_TRUE(eventually([&, first = valid_until()] { return valid_until() > first; }));
  freeze({0, 1});
  EXPECT_TRUE(eventually([&] { return listener->failed_renewals >= 1; }));
  const TimePoint was = valid_until();
  EXPECT_TRUE(eventually([&] { return listener->failed_renewals >= 2; }));
  EXPECT_EQ(valid_until(), was);
  thaw_all();
  EXPECT_TRUE(eventually([&] { return valid_until() > was; }));
  EXPECT_EQ(client->release(held), ReleaseOutcome::released);
}

}  // namespace

}  // namespace lockbench::test

#include <atomic>

#include "strategies/registry.h"
#include "strategies/renewal.h"
#include "tests/conformance/redis-wait/replicas_fixture.h"

namespace lockbench::test {
namespace {

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

TEST_F(ReentrantWait, ARenewalCountsOnceAReplicaKnowsOfIt) {
  const AcquireResult held = client_->try_once(bench_.key());
  ASSERT_TRUE(held.lease) << unexpected(held, AcquireOutcome::acquired);
  const TimePoint was = held.lease->state->valid_until();
  freeze({0, 1});
  EXPECT_EQ(client_->lock().renew(*held.lease, 2 * kLongTtl).outcome, RenewOutcome::failed);
  EXPECT_EQ(held.lease->state->valid_until(), was);
  must(replica(0).thaw());
  EXPECT_TRUE(eventually([&] {
    return client_->lock().renew(*held.lease, 2 * kLongTtl).outcome == RenewOutcome::renewed;
  }));
  EXPECT_GT(held.lease->state->valid_until(), was);
}

class FailedRenewals : public StrategyObserver {
 public:
  void on_renewal(const RenewalReport& report) override {
    if (report.outcome == RenewalAnswer::failed) ++count;
  }
  std::atomic<int> count = 0;
};

TEST_F(ReentrantWait, SoDoesATimersRenewal) {
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

#include <gmock/gmock.h>

#include "strategies/registry.h"
#include "tests/conformance/common/waiter.h"
#include "tests/conformance/etcd/etcd_test_store.h"

namespace lockbench::test {
namespace {

/// Long enough for a busy machine to keep it alive.
constexpr seconds kSessionTtl{5};

class EtcdSessions : public testing::TestWithParam<const char*> {
 protected:
  const Descriptor& strategy_ = *find_strategy(GetParam());
};

TEST_P(EtcdSessions, AreSharedByTheLocksOfAClientAndByNobodyElse) {
  EtcdProbe& probe = shared_etcd().probe();
  Bench bench(strategy_);
  const auto one = bench.client(), two = bench.client();
  ASSERT_TRUE(one->try_once(bench.key() + ":1").lease);
  const auto first = probe.keys(bench.key());
  ASSERT_TRUE(one->try_once(bench.key() + ":2").lease);
  ASSERT_TRUE(two->try_once(bench.key() + ":3").lease);
  EXPECT_EQ(probe.keys(bench.key() + ":2").front().lease(), first.front().lease());
  EXPECT_NE(probe.keys(bench.key() + ":3").front().lease(), first.front().lease());
}

TEST_P(EtcdSessions, ArePromisedNoLongerThanTheServerKeepsThem) {
  Bench bench(strategy_);
  const auto holder = bench.client();
  // Fractions of a second are rounded up, as the store counts in whole seconds.
  const TimePoint asked_at = holder->now();
  const Lease held = granted(holder->try_once(bench.key(), kSessionTtl - milliseconds(500)));
  EXPECT_GE(held.state->valid_until(), asked_at + kSessionTtl);
  EXPECT_LT(held.state->valid_until(), holder->now() + kSessionTtl);
  const TimePoint granted_until = held.state->valid_until();
  ASSERT_TRUE(bench.worlds().await("LeaseKeepAlive", 1));
  EXPECT_TRUE(eventually([&] { return held.state->valid_until() > granted_until; }));
  EXPECT_LT(held.state->valid_until(), holder->now() + kSessionTtl);
}

/// Long before the client's next renewal would show it.
TEST_P(EtcdSessions, ThatEndWhileTheirClientWaitsAreFollowedByANewOne) {
  HeldBench bench(kLongTtl, strategy_);
  Waiter waiter(bench.client(), bench.key());
  ASSERT_TRUE(waiter.waits());
  EtcdProbe& probe = shared_etcd().probe();
  probe.revoke(probe.keys(bench.key()).back().lease());
  EXPECT_EQ(bench.holder->release(bench.held), ReleaseOutcome::released);
  EXPECT_TRUE(waiter.join().lease) << waiter.join().reason;
}

INSTANTIATE_TEST_SUITE_P(All, EtcdSessions, testing::Values("etcd", "chubby"));

/// The number of the leading member; nothing if no leader is elected.
std::optional<std::size_t> leader_of(const std::vector<std::unique_ptr<testbed::Server>>& cluster) {
  std::size_t leader = cluster.size();
  const bool found = eventually([&] {
    for (leader = 0; leader < cluster.size(); ++leader) {
      if (cluster[leader]->leads()) return true;
    }
    return false;
  });
  return found ? std::optional(leader) : std::nullopt;
}

TEST(EtcdCluster, FailsOverWithoutLosingALock) {
  auto cluster = testbed::start_etcd_cluster(shared_testbed());
  ASSERT_TRUE(cluster) << cluster.error();
  const auto leader = leader_of(*cluster);
  ASSERT_TRUE(leader);
  // Clients of a follower only see the election.
  const auto port = [&](std::size_t after) {
    return cluster->at((*leader + after) % cluster->size())->port();
  };
  Bench bench(*find_strategy("etcd"), cluster->front()->url_form().on({port(1), port(2)}));
  const auto holder = bench.client(), other = bench.client();
  const Lease held = granted(holder->acquire(bench.key(), patience()));
  ASSERT_TRUE(cluster->at(*leader)->kill_hard());
  ASSERT_TRUE(leader_of(*cluster)) << "no other is elected";
  AcquireResult refused;
  // Their member may learn of the new leader a little later.
  EXPECT_TRUE(eventually([&] {
    refused = other->try_once(bench.key());
    return refused.lease || refused.outcome == AcquireOutcome::refused;
  }));
  EXPECT_EQ(refused.outcome, AcquireOutcome::refused) << refused.reason;
  EXPECT_TRUE(held.state->valid_at(holder->now()));
  EXPECT_EQ(holder->release(held), ReleaseOutcome::released);
  const Lease next = granted(other->try_once(bench.key()));
  EXPECT_GT(*next.fencing, *held.fencing);
}

TEST(EtcdUsers, AreLetInByTheirPasswordAndAgainAfterARestart) {
  EtcdTestStore tested;
  const std::uint16_t port = tested.server().port();
  const std::string url = tested.server().url();
  HeldBench bench(kLongTtl, *find_strategy("etcd"), url);
  EXPECT_EQ(bench.holder->release(bench.held), ReleaseOutcome::released);
  // It forgets the tokens that it has issued.
  ASSERT_TRUE(tested.server().restart(true));
  AcquireResult again = bench.holder->acquire(bench.key(), patience());
  // One acquisition may fail: the end of an idle connection goes unnoticed.
  if (!again.lease) again = bench.holder->acquire(bench.key(), patience());
  ASSERT_TRUE(again.lease) << again.reason;
  EXPECT_EQ(bench.holder->release(*again.lease), ReleaseOutcome::released);
  const StoreKind* const kind = find_store_kind("etcd");
  EXPECT_TRUE(store_at(port)->reach({}));
  for (const std::string user : {"root:hunter2@", ""}) {
    const auto reached =
        kind->make(fmt::format("etcd://{}127.0.0.1:{}", user, port), kPatience)->reach({});
    ASSERT_FALSE(reached);
    EXPECT_THAT(reached.error().message, testing::StartsWith(fmt::format("127.0.0.1:{}: ", port)));
    EXPECT_THAT(reached.error().message, testing::Not(testing::HasSubstr("hunter2")));
  }
}

TEST(EtcdStore, RemovesTheKeysOfALock) {
  EtcdTestStore& tested = shared_etcd();
  tested.clear();
  const auto store = store_at(tested.server().port());
  tested.probe().put("lockbench:r:{1}/a");
  tested.probe().put("lockbench:r:{1}/b/c");
  tested.probe().put("lockbench:r:{10}/a");
  const std::vector<std::string> keys = {"lockbench:r:{1}", "lockbench:r:{2}"};
  EXPECT_EQ(store->remove_keys(keys, {}).value_or(99), 2U);
  EXPECT_THAT(tested.keys(), testing::ElementsAre("lockbench:r:{10}"));
  for (const char* key : {"lockbench:r-1:{1}/a", "lockbench:r1:{1}/a", "lockbench:other:{1}/a"}) {
    tested.probe().put(key);
  }
  EXPECT_EQ(store->remove_run("r", {}).value_or(99), 2U) << "its own, and its part's";
  EXPECT_THAT(tested.keys(),
              testing::UnorderedElementsAre("lockbench:r1:{1}", "lockbench:other:{1}"));
}

/// Places in queues that could not be removed, of a client whose session continues because it holds
/// another lock.
class EtcdPlaces : public testing::TestWithParam<const char*> {
 protected:
  std::string key(const char* which) const { return bench_.key() + ":" + which; }
  static auto below(const std::string& key) { return shared_etcd().probe().keys(key); }

  Bench bench_{*find_strategy(GetParam())};
  std::unique_ptr<Client> client_ = bench_.client();
  std::unique_ptr<Client> other_ = bench_.client();
};

TEST_P(EtcdPlaces, ThatCouldNotBeLeftAreReportedAndLeftWithTheNextLock) {
  const Lease held = granted(client_->try_once(key("1")));
  const Lease others = granted(other_->try_once(key("2")));
  const std::size_t alone = below(key("2")).size();
  client_->faults().drop_command(2);  // the first command queues
  const AcquireResult refused = client_->try_once(key("2"));
  EXPECT_EQ(refused.outcome, AcquireOutcome::unknown);
  EXPECT_THAT(refused.reason, testing::HasSubstr(shared_endpoints().front()));
  EXPECT_EQ(below(key("2")).size(), alone + 1);
  EXPECT_TRUE(client_->try_once(key("3")).lease);
  EXPECT_EQ(below(key("2")).size(), alone);
  EXPECT_EQ(client_->release(held), ReleaseOutcome::released);
}

TEST_P(EtcdPlaces, ThatCouldNotBeLeftAreLeftWithTheNextRelease) {
  const Lease held = granted(client_->try_once(key("1")));
  const Lease first = granted(client_->try_once(key("2")));
  const Lease others = granted(other_->try_once(key("3")));
  const std::size_t alone = below(key("3")).size();
  client_->faults().drop_command(2);  // the first command queues
  EXPECT_EQ(client_->try_once(key("3")).outcome, AcquireOutcome::unknown);
  EXPECT_EQ(below(key("3")).size(), alone + 1);
  EXPECT_EQ(client_->release(first), ReleaseOutcome::released);
  EXPECT_EQ(below(key("3")).size(), alone);
  EXPECT_EQ(client_->release(held), ReleaseOutcome::released);
}

TEST_P(EtcdPlaces, ThatWereHeldAreLeftWithTheNextLock) {
  const AcquireResult first = client_->try_once(key("1"));
  const AcquireResult second = client_->try_once(key("2"));
  ASSERT_TRUE(first.lease && second.lease);
  client_->faults().drop_command(1);
  EXPECT_EQ(client_->release(*second.lease), ReleaseOutcome::failed);
  EXPECT_EQ(other_->try_once(key("2")).outcome, AcquireOutcome::refused);
  EXPECT_TRUE(client_->try_once(key("3")).lease);
  EXPECT_TRUE(other_->try_once(key("2")).lease);
  EXPECT_EQ(client_->release(*first.lease), ReleaseOutcome::released);
}

TEST_P(EtcdPlaces, OfItsOwnAreNotWaitedBehind) {
  const Lease held = granted(client_->try_once(key("1")));
  client_->faults().drop_answer(1);
  EXPECT_EQ(client_->try_once(key("2")).outcome, AcquireOutcome::unknown);
  client_->faults().drop_command(1);  // it cannot be removed before the next acquisition either
  // On a new session; it looks again after that session's TTL at the latest.
  const AcquireResult again = client_->acquire(key("2"), patience(), seconds(1));
  EXPECT_TRUE(again.lease) << again.reason;
  EXPECT_FALSE(held.state->lost_at()) << "it might have gone with its session";
  EXPECT_EQ(client_->release(held), ReleaseOutcome::released);
}

INSTANTIATE_TEST_SUITE_P(All, EtcdPlaces, testing::Values("etcd", "chubby"));

}  // namespace
}  // namespace lockbench::test

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <thread>

#include "strategies/registry.h"
#include "strategies/store.h"
#include "testbed/proxy/proxy.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/etcd/etcd_test_store.h"

namespace lockbench::test {
namespace {

/// Long enough for a busy machine to keep it alive.
constexpr seconds kSessionTtl{5};

class EtcdSessions : public testing::TestWithParam<const char*> {
 protected:
  const Descriptor& strategy_ = *find_strategy(GetParam());
};

TEST_P(EtcdSessions, OutliveTheirConnections) {
  auto pool = testbed::ProxyPool::start();
  ASSERT_TRUE(pool);
  auto proxy = testbed::start_proxy(**pool, shared_etcd().server().port());
  ASSERT_TRUE(proxy);
  shared_etcd().clear();
  Bench bench(strategy_, url_of((*proxy)->port()));
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key(), kSessionTtl);
  ASSERT_TRUE(held.lease) << held.reason;
  ASSERT_TRUE(bench.worlds().await("LeaseKeepAlive", 1));
  (*proxy)->cut();
  const TimePoint cut_at = holder->now();
  const LeaseState& state = *held.lease->state;
  EXPECT_TRUE(eventually([&] { return state.confirmed_at() > cut_at; }));
  EXPECT_FALSE(state.lost_at());
  EXPECT_TRUE(bench.is_held());
  EXPECT_EQ(holder->release(*held.lease), ReleaseOutcome::released);
  EXPECT_TRUE(holder->try_once(bench.key(), kSessionTtl).lease);
}

TEST_P(EtcdSessions, OutliveTheirServersProcess) {
  const auto tested = own_store();
  Bench bench(strategy_, *tested);
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key(), kSessionTtl);
  ASSERT_TRUE(held.lease) << held.reason;
  ASSERT_TRUE(tested->server().kill_hard());
  ASSERT_TRUE(tested->server().restart(true));
  const TimePoint back_at = holder->now();
  EXPECT_TRUE(eventually([&] { return held.lease->state->confirmed_at() > back_at; }));
  EXPECT_FALSE(held.lease->state->lost_at());
  EXPECT_TRUE(bench.is_held());
  EXPECT_EQ(holder->release(*held.lease), ReleaseOutcome::released);
}

TEST_P(EtcdSessions, EndWithTheirClients) {
  EtcdProbe& probe = shared_etcd().probe();
  Bench bench(strategy_);
  std::vector<etcdserverpb::KeyValue> keys;
  {
    const auto holder = bench.client();
    ASSERT_TRUE(holder->try_once(bench.key()).lease);
    keys = probe.keys();
    ASSERT_THAT(keys, testing::Not(testing::IsEmpty()));
    for (const auto& key : keys) EXPECT_TRUE(probe.is_alive(key.lease()));
  }
  for (const auto& key : keys) EXPECT_FALSE(probe.is_alive(key.lease()));
}

TEST_P(EtcdSessions, AreSharedByTheLocksOfAClientAndByNobodyElse) {
  EtcdProbe& probe = shared_etcd().probe();
  Bench bench(strategy_);
  const auto one = bench.client();
  const auto two = bench.client();
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
  // A fraction of a second is rounded up, as the store counts in whole ones.
  const TimePoint asked_at = holder->now();
  const AcquireResult held = holder->try_once(bench.key(), kSessionTtl - milliseconds(500));
  ASSERT_TRUE(held.lease) << held.reason;
  EXPECT_GE(held.lease->state->valid_until(), asked_at + kSessionTtl);
  EXPECT_LT(held.lease->state->valid_until(), holder->now() + kSessionTtl);
  const TimePoint granted_until = held.lease->state->valid_until();
  ASSERT_TRUE(bench.worlds().await("LeaseKeepAlive", 1));
  EXPECT_TRUE(eventually([&] { return held.lease->state->valid_until() > granted_until; }));
  EXPECT_LT(held.lease->state->valid_until(), holder->now() + kSessionTtl);
}

INSTANTIATE_TEST_SUITE_P(All, EtcdSessions, testing::Values("etcd", "chubby"));

/// The number of the member that leads; nothing if none comes to.
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
  // Clients of a follower, so that all they see of it is the election.
  const auto port = [&](std::size_t after) {
    return cluster->at((*leader + after) % cluster->size())->port();
  };
  Bench bench(*find_strategy("etcd"), cluster->front()->url_form().on({port(1), port(2)}));
  const auto holder = bench.client();
  const auto other = bench.client();
  const AcquireResult held = holder->acquire(bench.key(), patience());
  ASSERT_TRUE(held.lease) << held.reason;
  ASSERT_TRUE(cluster->at(*leader)->kill_hard());
  ASSERT_TRUE(leader_of(*cluster)) << "no other is elected";
  AcquireResult refused;
  // Their member may hear of the new leader a little later.
  EXPECT_TRUE(eventually([&] {
    refused = other->try_once(bench.key());
    return refused.lease || refused.outcome == AcquireOutcome::refused;
  }));
  EXPECT_EQ(refused.outcome, AcquireOutcome::refused) << refused.reason;
  EXPECT_TRUE(held.lease->state->valid_at(holder->now()));
  EXPECT_EQ(holder->release(*held.lease), ReleaseOutcome::released);
  const AcquireResult next = other->try_once(bench.key());
  ASSERT_TRUE(next.lease) << next.reason;
  EXPECT_GT(*next.lease->fencing, *held.lease->fencing);
}

TEST(EtcdUsers, AreLetInByTheirPasswordAndAgainAfterARestart) {
  EtcdTestStore tested;
  const std::uint16_t port = tested.server().port();
  const std::string url = tested.server().url();
  Bench bench(*find_strategy("etcd"), url);
  const auto client = bench.client();
  const AcquireResult held = client->try_once(bench.key());
  ASSERT_TRUE(held.lease) << held.reason;
  EXPECT_EQ(client->release(*held.lease), ReleaseOutcome::released);
  // It forgets the tokens that it has given out.
  ASSERT_TRUE(tested.server().restart(true));
  AcquireResult again = client->acquire(bench.key(), patience());
  // One may be lost: nobody has listened to a connection that ended while it was idle.
  if (!again.lease) again = client->acquire(bench.key(), patience());
  ASSERT_TRUE(again.lease) << again.reason;
  EXPECT_EQ(client->release(*again.lease), ReleaseOutcome::released);
  const StoreKind* const kind = find_store_kind("etcd");
  EXPECT_TRUE(kind->make(url, kPatience)->reach({}));
  for (const std::string user : {"root:hunter2@", ""}) {
    const auto reached =
        kind->make(fmt::format("etcd://{}127.0.0.1:{}", user, port), kPatience)->reach({});
    ASSERT_FALSE(reached);
    EXPECT_THAT(reached.error().message, testing::StartsWith(fmt::format("127.0.0.1:{}: ", port)));
    EXPECT_THAT(reached.error().message, testing::Not(testing::HasSubstr("hunter2")));
  }
}

TEST(EtcdStore, TellsVersionAndRestartsAndRemovesTheKeysOfALock) {
  EtcdTestStore tested;
  const StoreKind* const kind = find_store_kind("etcd");
  const auto store = kind->make(url_of(tested.server().port()), kPatience);
  const auto before = store->facts();
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_THAT(before->version, testing::MatchesRegex("3\\.[0-9]+\\.[0-9]+"));
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
  tested.clear();
  EXPECT_EQ(store->facts()->instance, before->instance);
  ASSERT_TRUE(tested.server().restart(true));
  EXPECT_NE(store->facts().value().instance, before->instance);
}

}  // namespace
}  // namespace lockbench::test

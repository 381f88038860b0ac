#include <gmock/gmock.h>

#include <filesystem>
#include <iterator>

#include "strategies/registry.h"
#include "tests/conformance/common/waiter.h"
#include "tests/conformance/zookeeper/zookeeper_test_store.h"

namespace lockbench::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr seconds kTtl{30};

class ZookeeperSessions : public testing::TestWithParam<const char*> {
 protected:
  const Descriptor& strategy_ = *find_strategy(GetParam());
};

TEST_P(ZookeeperSessions, GoOnWithAnotherServerWhenTheLeaderIsKilled) {
  const auto servers = must(testbed::start_zookeeper_ensemble(shared_testbed()));
  HeldBench bench(kTtl, strategy_, testbed::joint_url(servers));
  Waiter waiter(bench.client(), bench.key(), patience(), kTtl);
  ASSERT_TRUE(waiter.waits());
  const auto leads = [](const auto& server) {
    return server->alive() && testbed::zookeeper_mode(*server) == "leader";
  };
  const auto leader = std::find_if(servers.begin(), servers.end(), leads);
  ASSERT_NE(leader, servers.end());
  must((*leader)->kill_hard());
  // Wait for a leader: a release that finds no server in time might never be repeated.
  ASSERT_TRUE(eventually([&] { return std::any_of(servers.begin(), servers.end(), leads); }));
  EXPECT_FALSE(waiter.is_done());
  EXPECT_FALSE(bench.held.state->lost_at());
  EXPECT_EQ(bench.holder->release(bench.held), ReleaseOutcome::released);
  const Lease next = granted(waiter.join());
  EXPECT_GT(*next.fencing, *bench.held.fencing);
}

TEST_P(ZookeeperSessions, WithAPasswordMakeNodesThatNobodyElseMayTouch) {
  HeldBench bench(kTtl, strategy_);
  const std::string address = shared_store().server().address();
  for (const std::string& login : {std::string("zk://ann:se%3Acret@"), std::string()}) {
    Bench other(strategy_, login + address);
    const auto stranger = other.client();
    const AcquireResult refused = stranger->try_once(bench.key(), kTtl);
    EXPECT_EQ(refused.outcome, AcquireOutcome::failed) << login;
    EXPECT_THAT(refused.reason, HasSubstr("no permission")) << login;
    const auto store = find_store_kind("zookeeper")->make(login + address, kPatience);
    EXPECT_EQ(store->display(), address);
    EXPECT_FALSE(store->remove_run("conformance", {})) << login;
  }
  EXPECT_FALSE(bench.held.state->lost_at());
  EXPECT_EQ(bench.holder->release(bench.held), ReleaseOutcome::released);
}

TEST_P(ZookeeperSessions, MayBeginBelowAPath) {
  shared_store().clear();
  ZookeeperProbe& probe = shared_zookeeper().probe();
  const std::string address = shared_store().server().url();
  Bench nowhere(strategy_, address + "/app");
  const auto missing = nowhere.unconnected_client()->connect();
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("there is no node /app"));
  probe.make("/app");
  {
    Bench bench(strategy_, address + "/app");
    const auto client = bench.client();
    Waiter waiter(bench.client(), bench.key(), patience(), kTtl);
    const Lease held = granted(waiter.join());
    EXPECT_TRUE(probe.look("/app" + node_of(bench.key())).there);
    Waiter second(bench.client(), bench.key(), patience(), kTtl);
    EXPECT_TRUE(second.waits());
    EXPECT_EQ(waiter.client().release(held), ReleaseOutcome::released);
    EXPECT_TRUE(second.join().lease) << "watches work below a path too";
  }
  probe.remove_tree("/app");
}

TEST_P(ZookeeperSessions, AreThoseOfTheTtlThatIsAskedFor) {
  Bench bench(strategy_);
  const auto client = bench.client();
  const auto valid_for = [&](const std::string& key, Duration ttl) {
    const TimePoint asked = client->now();
    const AcquireResult held = client->try_once(key, ttl);
    EXPECT_TRUE(held.lease) << held.reason;
    return held.lease ? held.lease->state->valid_until() - asked : Duration{};
  };
  EXPECT_GT(valid_for(bench.key(), seconds(20)), seconds(19));
  // While it holds a lock, the session keeps its timeout.
  EXPECT_GT(valid_for(bench.key() + "-second", seconds(5)), seconds(19));
}

/// In the herd, all clients use the same node.
TEST_P(ZookeeperSessions, GiveALockBackOnce) {
  Bench bench(strategy_);
  const auto former = bench.client(), holder = bench.client();
  const Lease spent = granted(former->try_once(bench.key(), kTtl));
  ASSERT_EQ(former->release(spent), ReleaseOutcome::released);
  const Lease held = granted(holder->try_once(bench.key(), kTtl));
  EXPECT_EQ(former->release(spent), ReleaseOutcome::not_owner);
  EXPECT_TRUE(bench.is_held()) << "another's lock was freed";
  EXPECT_EQ(holder->release(held), ReleaseOutcome::released);
}

INSTANTIATE_TEST_SUITE_P(Of, ZookeeperSessions, testing::Values("zookeeper", "zookeeper-herd"),
                         [](const auto& tested) {
                           return std::string(tested.param) == "zookeeper" ? "zookeeper" : "herd";
                         });

TEST(KeptSessions, ShareOneThread) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  Bench bench(*find_strategy("zookeeper"));
  const auto before = threads();
  std::vector<std::unique_ptr<Client>> clients;
  clients.reserve(10);
  for (int i = 0; i < 10; ++i) clients.push_back(bench.client());
  EXPECT_LE(threads(), before + 1);
}

TEST(ZookeeperStore, RemovesWhatARunHasLeftAndNothingElse) {
  shared_store().clear();
  ZookeeperProbe& probe = shared_zookeeper().probe();
  Bench bench(*find_strategy("zookeeper"));
  warm_up(*bench.client(), bench.key());
  warm_up(*bench.client(), "lockbench:another:{lock}");
  probe.make("/not-ours");
  const auto store = store_at(shared_store().server().port());
  const std::vector<std::string> keys = {bench.key(), "lockbench:conformance:{none}"};
  EXPECT_EQ(store->remove_keys(keys, {}).value_or(99), 1U);
  EXPECT_EQ(store->remove_run("conformance", {}).value_or(99), 0U);
  EXPECT_THAT(probe.children("/lockbench"), ElementsAre("another"));
  EXPECT_EQ(store->remove_run("another", {}).value_or(99), 1U);
  EXPECT_FALSE(probe.look("/lockbench").there);
  EXPECT_TRUE(probe.look("/not-ours").there);
  EXPECT_TRUE(store->remove_run("another", {})) << "it may have gone before";
  probe.remove("/not-ours");
}

}  // namespace
}  // namespace lockbench::test

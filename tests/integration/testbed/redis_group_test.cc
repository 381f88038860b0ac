#include "testbed/servers/redis_group.h"

#include <gtest/gtest.h>

#include <fstream>

#include "strategies/redis/client/connection.h"
#include "tests/integration/testbed/support.h"
#include "tests/support/servers.h"

namespace lockbench::testbed {
namespace {

using namespace std::chrono_literals;
using test::says_of_replication;

class Replication : public testing::Test {
 protected:
  std::unique_ptr<RedisGroup> start(const RedisGroupOptions& options = {}) {
    RedisGroupOptions opened = options;
    opened.server = open_to_all(options.server);
    return must(start_redis_group(*testbed_, opened));
  }

  std::unique_ptr<Testbed> testbed_ = must_start();
  std::unique_ptr<ProxyPool> pool_ = ProxyPool::start().value();
};

TEST_F(Replication, AReplicaThatIsRestartedIsOneAgain) {
  const auto group = start({.replicas = 1});
  ASSERT_TRUE(group->replica(0).restart(true));
  EXPECT_TRUE(
      eventually([&] { return says_of_replication(group->replica(0), "master_link_status:up"); }));
}

TEST_F(Replication, APromotedReplicaLacksWhatWasHeldBack) {
  const auto group = start({.replicas = 2, .proxies = pool_.get()});
  Server& primary = group->primary();
  Server& heir = group->replica(0);
  ASSERT_EQ(ask(primary.port(), "SET early value"), "+OK");
  ASSERT_TRUE(eventually([&] { return ask(heir.port(), "EXISTS early") == ":1"; }));
  EXPECT_EQ(ask(heir.port(), "SET key value").substr(0, 9), "-READONLY");

  group->replication()->hold();
  ASSERT_EQ(ask(primary.port(), "SET late value"), "+OK");
  ASSERT_TRUE(primary.kill_hard());
  ASSERT_TRUE(group->fail_over());
  group->replication()->heal();
  EXPECT_EQ(&group->primary(), &heir);
  EXPECT_TRUE(says_of_replication(heir, "role:master"));
  EXPECT_EQ(ask(heir.port(), "EXISTS early"), ":1");
  EXPECT_EQ(ask(heir.port(), "EXISTS late"), ":0");
  EXPECT_EQ(ask(heir.port(), "SET key value"), "+OK");
  EXPECT_TRUE(says_of_replication(group->replica(1), "role:slave"));
}

TEST_F(Replication, AReplicaTakesThePlaceOfItsPrimaryWhichFollowsItThen) {
  const auto group = start({.replicas = 2});
  const std::uint16_t before = group->primary().port();
  EXPECT_EQ(ask(before, "SET key value"), "+OK");
  ASSERT_TRUE(eventually([&] { return ask(group->replica(0).port(), "EXISTS key") == ":1"; }));
  // Twice, so that the returned server can be the next to die.
  for (int round = 0; round < 2; ++round) {
    const std::uint16_t dead = group->primary().port();
    ASSERT_TRUE(group->primary().kill_hard());
    ASSERT_TRUE(group->fail_over());
    EXPECT_NE(group->primary().port(), dead);
    EXPECT_TRUE(says_of_replication(group->primary(), "role:master"));
    EXPECT_EQ(ask(group->primary().port(), "EXISTS key"), ":1");
    const auto back = group->rejoin();
    ASSERT_TRUE(back) << back.error();
    EXPECT_EQ(group->replica(0).port(), dead);
    EXPECT_TRUE(says_of_replication(group->primary(), "connected_slaves:2"));
  }
  EXPECT_EQ(group->primary().port(), before) << "the first to come back is the first to be next";
}

// A lock behind real sentinels: clients are led to the master, before and after a master's death.

class Watched : public testing::Test {
 protected:
  std::unique_ptr<redis::Connection> connect_to(const std::string& url) {
    return factory_->make(redis::parse_endpoint(url).value(), test::kPatience, *env_);
  }

  std::unique_ptr<Testbed> testbed_ = must_start();
  std::unique_ptr<RedisGroup> group_ = must(start_redis_group(*testbed_, {.replicas = 1}));
  std::unique_ptr<SentinelGroup> sentinels_ =
      must(start_sentinels(*testbed_, group_->primary().port()));
  const std::unique_ptr<Env> env_ = make_system_env(1);
  const std::unique_ptr<redis::ConnectionFactory> factory_ = redis::make_connection_factory();
};

TEST_F(Watched, AConnectionFindsTheMasterAndItsSuccessor) {
  const auto redis = connect_to(sentinels_->url());
  ASSERT_TRUE(redis->call({"SET", "key", "value"}));
  // Replicated before the primary dies, so that the successor has the data.
  ASSERT_TRUE(redis->call({"WAIT", "1", "1000"})->is_integer(1));
  ASSERT_TRUE(group_->primary().kill_hard());
  EXPECT_FALSE(redis->call({"GET", "key"}));
  const auto replaced = sentinels_->await_master(group_->replica(0).port(), test::kPatience);
  ASSERT_TRUE(replaced) << replaced.error();
  const auto value = redis->call({"GET", "key"});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_TRUE(value->is_text("value"));
  EXPECT_EQ(redis->times_connected(), 2U);
}

/// Although nothing breaks the connection to it.
TEST_F(Watched, AMasterThatIsOneNoMoreIsNotKept) {
  const auto redis = connect_to(sentinels_->url());
  ASSERT_TRUE(redis->call({"SET", "key", "value"}));
  const auto primary = factory_->make(redis::parse_endpoint(group_->primary().url()).value(),
                                      test::kPatience, *env_);
  ASSERT_TRUE(primary->call({"REPLICAOF", "127.0.0.1", "1"}));
  const auto refused = redis->call({"SET", "key", "other"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, StoreError::Kind::rejected) << refused.error().message;
  const auto asked_again = redis->call({"SET", "key", "other"});
  ASSERT_FALSE(asked_again);
  EXPECT_EQ(asked_again.error().kind, StoreError::Kind::not_sent) << asked_again.error().message;
  ASSERT_TRUE(primary->call({"REPLICAOF", "NO", "ONE"}));
  EXPECT_TRUE(redis->call({"SET", "key", "other"}));
}

TEST(Ports, LieBelowThoseOfClients) {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  if (first <= 10'000) first = 65'536;  // the range for clients may cover all ports
  for (int i = 0; i < 20; ++i) EXPECT_LT(free_loopback_port().value(), first);
}

}  // namespace
}  // namespace lockbench::testbed

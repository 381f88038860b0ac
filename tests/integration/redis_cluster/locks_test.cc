// Every lock that lives on one Redis, on the servers of a cluster, with the least rights.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "strategies/env.h"
#include "strategies/redis/client/cluster.h"
#include "strategies/redis/client/rights.h"
#include "strategies/registry.h"
#include "strategies/store.h"
#include "strategies/thread.h"
#include "testbed/servers/redis_cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

constexpr std::chrono::seconds kTtl{600};

/// As docs/operations.md has it, for a user `tested`.
std::vector<std::string> least_rights() {
  std::istringstream text(redis::acl_command(all_strategies()) +
                          " +asking +cluster|slots +spublish +ssubscribe +sunsubscribe");
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word == ">PASSWORD" ? ">hunter2" : word);
  words.at(2) = "tested";
  return words;
}

testbed::RedisCluster& cluster() {
  static const std::unique_ptr<testbed::RedisCluster> one = [] {
    testbed::RedisOptions options;
    options.durable = false;
    auto started = must(testbed::start_redis_cluster(shared_testbed(), options));
    for (std::size_t i = 0; i < testbed::RedisCluster::kShards; ++i) {
      for (const testbed::Server* server : {&started->primary(i), &started->replica(i)}) {
        RedisProbe(server->port()).ask(least_rights());
      }
    }
    return started;
  }();
  return *one;
}

/// For that user.
std::string limited_url() {
  const std::string url = cluster().url();
  return "redis+cluster://tested:hunter2" + url.substr(url.find('@'));
}

std::vector<const Descriptor*> sharded_strategies() {
  std::vector<const Descriptor*> all = all_strategies();
  std::erase_if(all, [](const Descriptor* one) {
    return one->backend != "redis" || one->traits.nodes != 1 || one->traits.needs_replicas ||
           one->traits.updates;
  });
  return all;
}

class ClusterLocks : public testing::TestWithParam<const Descriptor*> {
 protected:
  /// Another client of the same process.
  std::unique_ptr<LockStrategy> client() {
    envs_.push_back(make_system_env(envs_.size() + 1));
    auto lock = make_strategy(*GetParam(), {.endpoints = endpoints_,
                                            .options = options_,
                                            .env = *envs_.back(),
                                            .services = services_,
                                            .client = static_cast<int>(envs_.size())});
    if (auto connected = lock->connect(); !connected) {
      throw std::runtime_error(connected.error().message);
    }
    return lock;
  }
  AcquireResult ask(LockStrategy& lock, Duration longest = {}) {
    return lock.acquire({.key = key_, .ttl = kTtl, .deadline = envs_.front()->now() + longest});
  }
  Lease granted(LockStrategy& lock) {
    AcquireResult result = ask(lock, kPatience);
    if (!result.lease) throw std::runtime_error("not granted: " + result.reason);
    return *std::move(result.lease);
  }
  RenewOutcome renewed(LockStrategy& lock, const Lease& lease) {
    if (!GetParam()->traits.renew_check) return RenewOutcome::renewed;
    return lock.renew(lease, kTtl).outcome;
  }

  const std::string key_ = fmt::format("lockbench:sharded:{{{}}}", GetParam()->name);
  const int slot_ = redis::slot_of(key_);
  const Endpoints endpoints_{{"redis", {limited_url()}}};
  const StrategyOptions options_{.command_timeout = kPatience};
  std::vector<std::unique_ptr<Env>> envs_;  ///< outlive the services
  Services services_;
};

TEST_P(ClusterLocks, ExcludeEachOtherAndAreHandedOver) {
  const auto holder = client(), other = client();
  const Lease held = granted(*holder);
  EXPECT_EQ(ask(*other).outcome, AcquireOutcome::refused);
  EXPECT_EQ(renewed(*holder, held), RenewOutcome::renewed);
  auto waiter = in_background([&] { return ask(*other, kPatience); });
  EXPECT_EQ(holder->release(held).outcome, ReleaseOutcome::released);
  const AcquireResult next = waiter.get();
  ASSERT_TRUE(next.lease) << next.reason;
  EXPECT_EQ(ask(*holder).outcome, AcquireOutcome::refused);
  EXPECT_EQ(other->release(*next.lease).outcome, ReleaseOutcome::released);
}

TEST_P(ClusterLocks, FollowTheirSlot) {
  const auto holder = client(), other = client();
  const Lease held = granted(*holder);
  EXPECT_EQ(ask(*other).outcome, AcquireOutcome::refused);
  ASSERT_TRUE(cluster().move_keys(slot_));
  // A script with several keys may be told to try again until the slot has moved.
  EXPECT_FALSE(ask(*other).lease);
  EXPECT_EQ(renewed(*holder, held), RenewOutcome::renewed);
  ASSERT_TRUE(cluster().move_slot(slot_));
  EXPECT_EQ(renewed(*holder, held), RenewOutcome::renewed);
  EXPECT_EQ(ask(*other).outcome, AcquireOutcome::refused);
  EXPECT_EQ(holder->release(held).outcome, ReleaseOutcome::released);
  EXPECT_EQ(other->release(granted(*other)).outcome, ReleaseOutcome::released);
}

INSTANTIATE_TEST_SUITE_P(, ClusterLocks, testing::ValuesIn(sharded_strategies()),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

class NotifyingLock : public ClusterLocks {};

/// Messages stay on the shard of the key.
TEST_P(NotifyingLock, WaitsOnAShardedChannel) {
  const auto holder = client(), other = client();
  const Lease held = granted(*holder);
  auto waiter = in_background([&] { return ask(*other, kPatience); });
  std::string channels;
  const bool listens = eventually([&] {
    channels.clear();
    for (std::size_t i = 0; i < testbed::RedisCluster::kShards; ++i) {
      channels += RedisProbe(cluster().primary(i).port()).ask({"PUBSUB", "SHARDCHANNELS"});
    }
    return !channels.empty();
  });
  EXPECT_TRUE(listens);
  EXPECT_THAT(channels, testing::HasSubstr(key_ + ":released"));
  EXPECT_EQ(holder->release(held).outcome, ReleaseOutcome::released);
  const AcquireResult next = waiter.get();
  ASSERT_TRUE(next.lease) << next.reason;
  other->release(*next.lease);
}

INSTANTIATE_TEST_SUITE_P(, NotifyingLock, testing::Values(find_strategy("redis-reentrant-notify")));

TEST(ClusterStore, RemovesKeysOfAllShards) {
  const auto store = find_store_kind("redis")->make(cluster().url(), kPatience);
  ASSERT_TRUE(store->reach({}));
  EXPECT_FALSE(store->facts()->version.empty());
  const std::string run = "20261121T012530Z-4f3a9c";
  const auto env = make_system_env(1);
  const auto connection = redis::make_connection_factory()->make(
      redis::parse_endpoint(cluster().url()).value(), kPatience, *env);
  std::vector<std::string> keys;
  const auto write_all = [&] {
    for (const std::string& key : keys) ASSERT_TRUE(connection->call({"SET", key, "1"}));
  };
  for (int i = 0; i < 30; ++i) keys.push_back(fmt::format("lockbench:{}:{{x:1:{}}}", run, i));
  write_all();
  EXPECT_EQ(store->remove_keys(keys, {}).value(), keys.size());
  write_all();
  EXPECT_EQ(store->remove_run(run, {}).value(), keys.size());
  for (const std::string& key : keys) {
    EXPECT_TRUE(connection->call({"EXISTS", key})->is_integer(0)) << key;
  }
}

}  // namespace
}  // namespace lockbench::test

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "deployment/private_store.h"
#include "strategies/redis/client/cluster.h"
#include "testbed/process/parallel.h"
#include "testbed/process/shims.h"
#include "testbed/servers/redis_cluster.h"
#include "testbed/servers/redis_group.h"

namespace lockbench::deployment {
namespace {

testbed::RedisOptions options_for(const testbed::Testbed& host, const StoreRequest& request) {
  testbed::RedisOptions options;
  options.tls = host.tls();
  options.max_clients = request.clients;
  options.durable = request.setup == Setup::durable || request.setup == Setup::unsynced ||
                    request.setup == Setup::load || request.setup == Setup::sharded;
  options.notes_syncs = request.setup == Setup::unsynced;
  if (request.setup == Setup::durable) options.config = {"appendfsync always"};
  return options;
}

/// One Redis, a primary with replicas, or independent servers for a quorum. Only the first node,
/// which faults strike, has the setup.
class RedisStore : public PrivateStore {
 public:
  RedisStore(testbed::Testbed& host, const StoreRequest& request)
      : PrivateStore("redis", request.setup == Setup::durable),
        others_(static_cast<std::size_t>(request.nodes - 1)) {
    testbed::in_parallel(others_.size() + 1, [&](std::size_t node) {
      if (node == 0) return start_first(host, request);
      others_[node - 1] = need(testbed::start_redis(host, options_for(host, request)));
    });
  }

  Servers servers() const override {
    Servers all = group_ ? Servers{&group_->primary()} : PrivateStore::servers();
    for (const auto& node : others_) all.push_back(node.get());
    return all;
  }
  Servers every_server() const override {
    Servers all = servers();
    for (std::size_t i = 0; group_ && i < group_->replicas(); ++i) {
      all.push_back(&group_->replica(i));
    }
    return all;
  }
  int replicas() const override { return group_ ? static_cast<int>(group_->replicas()) : 0; }
  std::vector<std::string> urls() const override {
    if (sentinels_) return {sentinels_->url()};
    return PrivateStore::urls();
  }
  std::string struck() const override {
    if (others_.empty()) return PrivateStore::struck();
    return fmt::format("one of its {} nodes", others_.size() + 1);
  }

  std::string value_of(const std::string& key) override { return ask({"GET", key}).text; }

  /// With replicas, returns when they follow it again.
  void restart() override {
    need(servers().front()->restart(keeps_data()));
    if (group_) need(group_->await_in_step());
  }

  std::uintmax_t crash_host() override {
    testbed::Server& server = *servers().front();
    need(server.kill_hard());
    const std::uintmax_t lost = need(testbed::forget_unsynced(server));
    need(server.restart(true));
    return lost;
  }

  void fill_memory(const std::string& key, const std::string& policy) override {
    constexpr std::uint64_t kRoom = 1 << 20;
    ask({"CONFIG", "SET", "maxmemory-policy", policy});
    const std::string info = ask({"INFO", "memory"}).text;
    const std::size_t at = info.find("used_memory:");
    if (at == std::string::npos) throw Failure("INFO memory has no used_memory");
    const auto used = std::stoull(info.substr(at + std::string_view("used_memory:").size()));
    ask({"CONFIG", "SET", "maxmemory", std::to_string(used + kRoom)});
    const std::string filling(1024, 'x');
    for (std::uint64_t i = 0; i < 8 * kRoom / filling.size(); ++i) {
      // volatile-ttl evicts the key that expires first, allkeys-lru (nearly) the least recently
      // used: the lock's.
      ask({"SET", fmt::format("filling:{}", i), filling, "EX", "86400"});
      if (i % 64 == 0 && ask({"EXISTS", key}).is_integer(0)) return;
    }
  }

  void cut_replication() override {
    if (sentinels_) {
      group_->replication()->hold({.number = replication_});
      return;
    }
    for (std::size_t i = 0; i < group_->replicas(); ++i) group_->replication(i)->hold();
  }

  void cut_off_successor() override { group_->replication(0)->hold(); }

  void fail_over() override {
    need(group_->primary().kill_hard());
    // With Sentinels the replica is promoted already; promoting it again below changes nothing.
    if (sentinels_) {
      need(sentinels_->await_master(group_->replica(0).port(), std::chrono::seconds(30)));
    }
    need(group_->fail_over());
    need(group_->await_followers());
    const std::scoped_lock lock(mutex_);
    connection_.reset();  // it leads to the dead primary
  }

  void kill_leader() override { need(group_->primary().kill_hard()); }
  void replace_leader() override {
    need(group_->fail_over());
    for (const auto& line : lines()) line->lead_to(group_->primary().port());
    need(group_->rejoin());
  }
  void settle() override {
    if (group_) need(group_->lead_again());
  }

 private:
  void start_first(testbed::Testbed& host, const StoreRequest& request) {
    testbed::RedisOptions options = options_for(host, request);
    options.clock = clock_for(host, request.setup);
    const bool watched = request.setup == Setup::watched;
    const bool separable = watched || request.setup == Setup::replicated;
    if (request.replicas == 0 && !separable) {
      add(testbed::start_redis(host, options));
      return;
    }
    testbed::RedisGroupOptions group{.replicas = request.replicas, .server = options};
    if (separable) {
      group.replicas = std::max(request.replicas, 1);
      group.proxies = &host.proxies();
      // Sentinels make replicas follow the address that they watch.
      group.proxy_each = !watched;
    }
    group_ = need(testbed::start_redis_group(host, group));
    if (!watched) return;
    const testbed::Proxy& line = *group_->replication();
    replication_ = line.counts().accepted;
    sentinels_ = need(testbed::start_sentinels(host, line.port(), host.tls()));
  }

  redis::Reply ask(std::initializer_list<std::string_view> command) {
    const std::scoped_lock lock(mutex_);
    if (!connection_) {
      const auto endpoint = redis::parse_endpoint(servers().front()->url());
      connection_ =
          redis::make_connection_factory()->make(*endpoint, std::chrono::seconds(5), *env_);
    }
    return need(connection_->call(command));
  }

  std::vector<std::unique_ptr<testbed::Server>> others_;  ///< nodes of a quorum
  std::unique_ptr<testbed::RedisGroup> group_;
  std::unique_ptr<testbed::SentinelGroup> sentinels_;
  std::uint64_t replication_ = 0;  ///< the replica's connection, by its number on the common line
  std::mutex mutex_;               ///< guards the connection
  const std::unique_ptr<Env> env_ = make_system_env(0);
  std::unique_ptr<redis::Connection> connection_;
};

/// A Redis Cluster. Faults of a primary strike that of the latest aim, at first of the first shard.
class ShardedRedis : public PrivateStore {
 public:
  ShardedRedis(testbed::Testbed& host, const StoreRequest& request)
      : PrivateStore("redis", true),
        cluster_(need(testbed::start_redis_cluster(host, options_for(host, request)))) {}

  Servers servers() const override {
    Servers all;
    for (std::size_t i = 0; i < testbed::RedisCluster::kShards; ++i) {
      all.push_back(&cluster_->primary(i));
    }
    return all;
  }
  Servers every_server() const override {
    Servers all = servers();
    for (std::size_t i = 0; i < testbed::RedisCluster::kShards; ++i) {
      all.push_back(&cluster_->replica(i));
    }
    return all;
  }
  std::vector<std::string> urls() const override { return {cluster_->url()}; }
  std::string struck() const override { return "the lock's shard"; }

  void aim_at(const std::string& key) override { slot_ = redis::slot_of(key); }
  void move_keys() override { need(cluster_->move_keys(slot_)); }
  void move_slot() override { need(cluster_->move_slot(slot_)); }
  void lose_shard() override {
    need(cluster_->primary(shard()).kill_hard());
    need(cluster_->replica(shard()).kill_hard());
  }
  /// The replica is gone, and comes back at the failover without what was written meanwhile.
  void cut_replication() override { need(cluster_->replica(shard()).kill_hard()); }
  void fail_over() override {
    need(cluster_->primary(shard()).kill_hard());
    if (!cluster_->replica(shard()).alive()) need(cluster_->replica(shard()).restart(true));
    need(cluster_->await_takeover(shard()));
  }
  void kill_leader() override { need(cluster_->primary(shard()).kill_hard()); }
  void replace_leader() override {
    need(cluster_->await_takeover(shard()));
    need(cluster_->replica(shard()).restart(true));
    need(cluster_->await_ok());
  }
  void settle() override { need(cluster_->await_ok()); }

 private:
  std::size_t shard() const { return testbed::RedisCluster::shard_of(slot_); }

  std::unique_ptr<testbed::RedisCluster> cluster_;
  int slot_ = 0;
};

const PrivateStoreRegistration private_redis({
    .name = "redis",
    .program = testbed::kRedisServer.name,
    .find_program = [] { return testbed::find_program(testbed::kRedisServer); },
    .start = [](testbed::Testbed& host,
                const StoreRequest& request) -> std::unique_ptr<PrivateStore> {
      if (request.sharded) return std::make_unique<ShardedRedis>(host, request);
      return std::make_unique<RedisStore>(host, request);
    },
    .shards = true,
    .replicates = true,
});

}  // namespace
}  // namespace lockbench::deployment

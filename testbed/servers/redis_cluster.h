#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/servers/kinds.h"

namespace lockbench::testbed {

/// A Redis Cluster of three shards, each a primary with a replica. Thread-safe as its servers are.
class RedisCluster {
 public:
  static constexpr std::size_t kShards = 3;
  static constexpr int kSlots = 16384;

  Server& primary(std::size_t shard) { return *primaries_.at(shard); }
  Server& replica(std::size_t shard) { return *replicas_.at(shard); }
  /// By the first layout: the shards have equal ranges of slots.
  static std::size_t shard_of(int slot) {
    return static_cast<std::size_t>(slot) * kShards / static_cast<std::size_t>(kSlots);
  }
  /// "redis+cluster://user:secret@127.0.0.1:PORT,...", with the present primaries first.
  std::string url() const;

  /// After the shard's primary was killed: waits, at most 30 s, until its replica has taken its
  /// place. The killed server then is the replica.
  tl::expected<void, std::string> await_takeover(std::size_t shard);
  /// Waits, at most 30 s, until all servers regard the cluster as complete and each replica follows
  /// its primary.
  tl::expected<void, std::string> await_ok();

  /// Moves a slot from its shard to the next one in two steps: its keys, while requests for others
  /// of them go to either shard, and then the slot itself.
  tl::expected<void, std::string> move_keys(int slot);
  tl::expected<void, std::string> move_slot(int slot);

 private:
  friend tl::expected<std::unique_ptr<RedisCluster>, std::string> start_redis_cluster(
      Testbed& testbed, const RedisOptions& options);
  RedisCluster() = default;
  std::vector<Server*> servers() const;
  Server& next(int slot) { return primary((shard_of(slot) + 1) % kShards); }
  void introduce();
  std::string missing() const;

  std::vector<std::unique_ptr<Server>> primaries_, replicas_;  ///< by shard
};

/// The servers start side by side; waits at most 30 s until the cluster is complete.
tl::expected<std::unique_ptr<RedisCluster>, std::string> start_redis_cluster(
    Testbed& testbed, const RedisOptions& options = {});

}  // namespace lockbench::testbed

#pragma once

#include <memory>
#include <string>

#include "testbed/servers/redis_group.h"
#include "tests/conformance/redis/redis_test_store.h"

namespace lockbench::test {

inline constexpr int kReplicas = 2;

/// A primary Redis with replicas; locks are taken on the primary. For one thread.
class ReplicatedStore : public RedisTestStore {
 public:
  ReplicatedStore();

  testbed::Server& server() override { return group_->primary(); }
  int replicas() override { return kReplicas; }
  /// Without the replicas' connections.
  int other_connections() override;
  /// Waits until every replica follows the primary again.
  void settle() override;

  testbed::RedisGroup& group() { return *group_; }

 private:
  bool replicas_follow();

  std::unique_ptr<testbed::RedisGroup> group_;
};

}  // namespace lockbench::test

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "testbed/servers/redis_group.h"
#include "tests/conformance/common/test_store.h"
#include "tests/support/servers.h"

namespace lockbench::test {

inline constexpr int kReplicas = 2;

/// A primary Redis with replicas; locks are taken on the primary. For one thread.
class ReplicatedStore : public TestStore {
 public:
  ReplicatedStore();

  testbed::Server& server() override { return group_->primary(); }
  void clear() override { probe().ask({"FLUSHALL"}); }
  std::vector<std::string> keys() override { return probe().keys(); }
  std::vector<std::string> staying() override;
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override { probe().remove(keys); }
  int replicas() override { return kReplicas; }
  /// Without those of the replicas.
  int other_connections() override;
  std::unique_ptr<RedisMonitor> monitor(std::size_t server) override;
  /// Until every replica follows the primary again.
  void settle() override;

  testbed::RedisGroup& group() { return *group_; }
  std::string url() { return group_->primary().url(); }

 private:
  bool replicas_follow();
  /// Of the primary; made anew, as it may have been restarted meanwhile.
  RedisProbe& probe();

  std::unique_ptr<testbed::RedisGroup> group_;
  std::optional<RedisProbe> probe_;
};

}  // namespace lockbench::test

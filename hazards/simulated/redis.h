#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deployment/private_store.h"
#include "simulate/redis/node.h"

namespace lockbench::hazards {

using RedisNodes = std::vector<std::unique_ptr<simulate::RedisNode>>;

/// Simulated Redis servers as a play sees them. What they cannot have is refused as by
/// PrivateStore.
class SimulatedRedis final : public deployment::PrivateStore {
 public:
  /// The nodes, of which faults strike the first, must outlive it.
  SimulatedRedis(RedisNodes& nodes, const deployment::StoreRequest& request)
      : PrivateStore("redis"), nodes_(nodes), replicas_(settings_of(request, true).replicas) {}

  /// The first node or another one. Throws deployment::NotOffered for what is not simulated.
  static simulate::RedisSettings settings_of(const deployment::StoreRequest& request,
                                             bool is_first);
  static std::string url_of(const simulate::RedisNode& node);

  Endpoints endpoints(const std::vector<std::uint16_t>& ports = {}) const override;
  std::vector<std::uint16_t> ports() const override;
  int replicas() const override { return replicas_; }
  std::string struck() const override;

  bool remove_key(const std::string& key) override;
  std::string value_of(const std::string& key) override;
  void restart() override;
  std::uintmax_t crash_host() override;
  void jump_clock(Duration ahead) override { first().clock.step(ahead); }
  void fill_memory(const std::string& key, const std::string& policy) override;
  void cut_replication() override;
  void cut_off_successor() override { first().cut_off(0); }
  void fail_over() override;
  void kill_node(std::size_t node) override { nodes_.at(node)->kill(); }
  void freeze_node(std::size_t node) override { nodes_.at(node)->freeze(); }
  void revive_node(std::size_t node) override;

 private:
  simulate::RedisNode& first() { return *nodes_.front(); }

  RedisNodes& nodes_;
  const int replicas_;
};

}  // namespace lockbench::hazards

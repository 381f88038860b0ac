#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deployment/private_store.h"
#include "simulate/stores.h"

namespace lockbench::hazards {

/// Simulated servers as a play sees them. What they cannot have is refused as by PrivateStore. A
/// cluster is one node: the first of its members leads, whichever that is.
class SimulatedServers : public deployment::PrivateStore {
 public:
  /// The nodes, of which faults strike the first, must outlive it.
  SimulatedServers(const simulate::SimulatedStore& kind, simulate::Nodes& nodes,
                   const deployment::StoreRequest& request);

  /// Of the first node or another one. Throws deployment::NotOffered for what is not simulated.
  static simulate::StoreSettings settings_of(const simulate::SimulatedStore& kind,
                                             const deployment::StoreRequest& request,
                                             bool is_first);

  Endpoints endpoints(const std::vector<std::uint16_t>& ports = {}) const override;
  std::vector<std::uint16_t> ports() const override;
  std::string struck() const override;

  bool remove_key(const std::string& key) override { return first().remove(key); }
  void restart() override;
  void jump_clock(Duration ahead) override { first().clock.step(ahead); }
  void fill_memory(const std::string& key, const std::string& policy) override;
  void cut_replication() override;
  void fail_over() override;
  void end_session(const std::string& key) override;

  std::size_t members() const override { return members_; }
  std::size_t member(bool leads) const override { return leads ? 0 : 1; }
  std::uint16_t port_of(std::size_t member) const override {
    return static_cast<std::uint16_t>(member + 1);
  }
  void restart_member(std::size_t member) override;
  /// A leader that stands still is apart already, and another one leads.
  void isolate(std::size_t member) override {
    if (!leader_frozen_) first().isolate(member);
  }
  void reunite() override { first().reunite(); }
  void freeze_leader() override;
  void thaw_leader() override;
  void kill_leader() override { first().kill(); }
  void replace_leader() override;

  void kill_node(std::size_t node) override { nodes_.at(node)->kill(); }
  void freeze_node(std::size_t node) override { nodes_.at(node)->freeze(); }
  void revive_node(std::size_t node) override;

 protected:
  simulate::StoreServer& first() { return *nodes_.front(); }

 private:
  const simulate::SimulatedStore& kind_;
  simulate::Nodes& nodes_;
  const std::size_t members_;
  bool leader_frozen_ = false;
};

/// With what only Redis has.
class SimulatedRedis final : public SimulatedServers {
 public:
  SimulatedRedis(const simulate::SimulatedStore& kind, simulate::Nodes& nodes,
                 const deployment::StoreRequest& request)
      : SimulatedServers(kind, nodes, request),
        replicas_(settings_of(kind, request, true).redis.replicas) {}

  int replicas() const override { return replicas_; }

  std::string value_of(const std::string& key) override;
  std::uintmax_t crash_host() override;
  void cut_replication() override;
  void cut_off_successor() override { redis().cut_off(0); }
  /// The first replica takes over, whichever has most of the data.
  void replace_leader() override;

 private:
  simulate::RedisNode& redis() { return static_cast<simulate::RedisNode&>(first()); }

  const int replicas_;
};

}  // namespace lockbench::hazards

#pragma once

#include <functional>
#include <map>
#include <memory>

#include "simulate/redis/node.h"
#include "strategies/redis/client/connection.h"

namespace lockbench::simulate {

class SimulatedConnection;

/// Makes the connections of one client's process to simulated servers.
class SimulatedFactory final : public redis::ConnectionFactory {
 public:
  SimulatedFactory(Host& host, const Nodes& nodes) : host_(host), nodes_(nodes) {}

  std::unique_ptr<redis::Connection> make(const redis::Endpoint& endpoint, const Timeouts& timeouts,
                                          Env& env) override;
  std::unique_ptr<redis::Subscriber> make_subscriber(const redis::Endpoint& endpoint,
                                                     const Timeouts& timeouts, Env& env) override;
  void poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) override;

 private:
  friend class SimulatedConnection;

  RedisNode& node_of(const redis::Endpoint& endpoint) const;
  /// Whether one of them has input; marks which.
  bool look(std::span<pollfd> descriptors) const;

  Host& host_;
  const Nodes& nodes_;
  std::map<int, SimulatedConnection*> connections_;  ///< by their descriptors
  int last_descriptor_ = 0;
};

}  // namespace lockbench::simulate

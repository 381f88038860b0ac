#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/redis/node.h"
#include "strategies/services.h"

namespace lockbench::simulate {

/// Of servers of any store: each kind takes what it can have.
struct StoreSettings {
  RedisSettings redis{};  ///< its lag is also that of ZooKeeper's followers
  int members = 1;        ///< of a cluster of etcd or ZooKeeper
  bool durable = true;    ///< of these: they come back with their data
};

/// A store that can be simulated.
struct SimulatedStore {
  std::string_view backend;
  int port;
  std::unique_ptr<StoreServer> (*make)(World& world, Network& network, int number, int region,
                                       const StoreSettings& settings);
  std::string_view scheme;      ///< of its URLs
  bool only_in_memory = false;  ///< it has neither a disk nor replicas

  /// Of the server of that number, or of some members of that cluster.
  std::string url_of(int number, const std::vector<std::uint16_t>& ports = {}) const;
};

std::span<const SimulatedStore> simulated_stores();
/// Null: it cannot be simulated.
const SimulatedStore* find_simulated_store(std::string_view backend);

/// For strategies on any of them.
void provide_connections(Services& services, const std::shared_ptr<Dialer>& dialer);

}  // namespace lockbench::simulate

#include "simulate/stores.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "simulate/memcached/node.h"
#include "simulate/zookeeper/node.h"
#include "strategies/redis/client/connection.h"
#ifdef LOCKBENCH_HAS_ETCD
#include "simulate/etcd/node.h"
#endif

namespace lockbench::simulate {
namespace {

constexpr std::array kStores{
    SimulatedStore{.backend = "redis",
                   .port = 6379,
                   .make = [](World& world, Network& network, int number, int region,
                              const StoreSettings& settings) -> std::unique_ptr<StoreServer> {
                     return std::make_unique<RedisNode>(world, network, number, region,
                                                        settings.redis);
                   },
                   .scheme = "redis"},
    SimulatedStore{.backend = "memcached",
                   .port = 11211,
                   .make = [](World& world, Network& network, int number, int region,
                              const StoreSettings& /*settings*/) -> std::unique_ptr<StoreServer> {
                     return std::make_unique<MemcachedNode>(world, network, number, region);
                   },
                   .scheme = "memcached",
                   .only_in_memory = true},
#ifdef LOCKBENCH_HAS_ETCD
    SimulatedStore{.backend = "etcd",
                   .port = 2379,
                   .make = [](World& world, Network& network, int number, int region,
                              const StoreSettings& settings) -> std::unique_ptr<StoreServer> {
                     return std::make_unique<EtcdNode>(world, network, number, region,
                                                       settings.members, settings.durable);
                   },
                   .scheme = "etcd"},
#endif
    SimulatedStore{.backend = "zookeeper",
                   .port = 2181,
                   .make = [](World& world, Network& network, int number, int region,
                              const StoreSettings& settings) -> std::unique_ptr<StoreServer> {
                     return std::make_unique<ZookeeperNode>(
                         world, network, number, region,
                         ZookeeperSettings{.members = settings.members,
                                           .lag = settings.redis.lag,
                                           .durable = settings.durable});
                   },
                   .scheme = "zk"},
};

}  // namespace

std::string SimulatedStore::url_of(int number, const std::vector<std::uint16_t>& ports) const {
  std::vector<std::string> places;
  for (const int one : ports) places.push_back(fmt::format("{}-{}:{}", backend, number, one));
  if (ports.empty()) places.push_back(fmt::format("{}-{}:{}", backend, number, port));
  return fmt::format("{}://{}", scheme, fmt::join(places, ","));
}

std::span<const SimulatedStore> simulated_stores() { return kStores; }

const SimulatedStore* find_simulated_store(std::string_view backend) {
  const auto* const found = std::ranges::find(kStores, backend, &SimulatedStore::backend);
  return found == kStores.end() ? nullptr : found;
}

void provide_connections(Services& services, const std::shared_ptr<Dialer>& dialer) {
  services.provide<Dialer>(dialer);
  services.provide<redis::ConnectionFactory>(redis::make_connection_factory_on(*dialer));
#ifdef LOCKBENCH_HAS_ETCD
  services.provide<etcd::Links>(std::make_shared<SimulatedLinks>(dialer));
#endif
}

}  // namespace lockbench::simulate

#include "hazards/simulated/redis.h"

#include <fmt/format.h>

#include <algorithm>

#include "hazards/play.h"

namespace lockbench::hazards {
namespace {

/// For a server to start, and for clients to learn that their connections are gone.
constexpr std::chrono::milliseconds kStart{10};

}  // namespace

simulate::RedisSettings SimulatedRedis::settings_of(const deployment::StoreRequest& request,
                                                    bool is_first) {
  using deployment::NotOffered;
  using simulate::Persistence;
  constexpr auto kUnplayable = NotStarted::Why::unplayable;
  if (request.sharded) throw NotOffered("not simulated: Redis Cluster", kUnplayable);
  simulate::RedisSettings settings{.persistence = Persistence::none, .may_die = true};
  if (!is_first) return settings;
  settings.replicas = request.replicas;
  switch (request.setup) {
    case Setup::durable:
      settings.persistence = Persistence::always;
      break;
    case Setup::unsynced:
      settings.persistence = Persistence::everysec;
      break;
    case Setup::replicated:
      settings.replicas = std::max(request.replicas, 1);
      break;
    case Setup::watched:
      throw NotOffered("not simulated: Sentinels", kUnplayable);
    case Setup::split:
    case Setup::pooled:
    case Setup::sharded:
      throw NotOffered("not simulated: servers that work together", kUnplayable);
    case Setup::load:
    case Setup::shared:
    case Setup::volatile_:
    case Setup::clocked:
    case Setup::cramped:
      break;
  }
  return settings;
}

std::string SimulatedRedis::url_of(const simulate::RedisNode& node) {
  return fmt::format("redis://{}:6379", node.host);
}

/// A line is on the way of its client's connections, so all clients have the same URLs.
Endpoints SimulatedRedis::endpoints(const std::vector<std::uint16_t>& /*ports*/) const {
  std::vector<std::string> urls;
  for (const auto& node : nodes_) urls.push_back(url_of(*node));
  return {{"redis", std::move(urls)}};
}

std::vector<std::uint16_t> SimulatedRedis::ports() const {
  std::vector<std::uint16_t> ports;
  for (const auto& node : nodes_) ports.push_back(static_cast<std::uint16_t>(node->number));
  return ports;
}

std::string SimulatedRedis::struck() const {
  if (nodes_.size() == 1) return PrivateStore::struck();
  return fmt::format("one of its {} nodes", nodes_.size());
}

bool SimulatedRedis::remove_key(const std::string& key) {
  return !first().ask({"DEL", key}).is_integer(0);
}

std::string SimulatedRedis::value_of(const std::string& key) {
  return first().ask({"GET", key}).text;
}

void SimulatedRedis::restart() {
  first().kill();
  PlayClock::sleep_for(kStart);
  first().restart();
  PlayClock::sleep_for(kStart);
}

std::uintmax_t SimulatedRedis::crash_host() {
  const std::size_t lost = first().unsynced();
  first().kill();
  first().restart();
  PlayClock::sleep_for(kStart);
  return lost;
}

void SimulatedRedis::fill_memory(const std::string& key, const std::string& policy) {
  // Which key goes first depends on the seed, but all go in the end.
  while (first().ask({"EXISTS", key}).is_integer(1)) {
    if (!first().evict(policy == "volatile-ttl")) return;
  }
}

void SimulatedRedis::cut_replication() {
  for (int replica = 0; replica < replicas_; ++replica) {
    first().cut_off(static_cast<std::size_t>(replica));
  }
}

void SimulatedRedis::fail_over() {
  first().kill();
  PlayClock::sleep_for(kStart);
  first().promote(0);
  PlayClock::sleep_for(kStart);
}

void SimulatedRedis::revive_node(std::size_t node) {
  nodes_.at(node)->restart();
  PlayClock::sleep_for(kStart);
}

}  // namespace lockbench::hazards

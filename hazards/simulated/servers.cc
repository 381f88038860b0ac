#include "hazards/simulated/servers.h"

#include <fmt/format.h>

#include <algorithm>

#include "hazards/play.h"

namespace lockbench::hazards {
namespace {

/// For a server to start, and for clients to learn that their connections are gone.
constexpr std::chrono::milliseconds kStart{10};

Duration shortest_session_on(std::string_view backend) {
  const auto* const kind = deployment::find_private_store_kind(backend);
  const bool has_sessions = kind != nullptr && kind->clusters;
  return has_sessions ? deployment::kShortestSession : Duration::zero();
}

}  // namespace

SimulatedServers::SimulatedServers(const simulate::SimulatedStore& kind, simulate::Nodes& nodes,
                                   const deployment::StoreRequest& request)
    : PrivateStore(kind.backend, false, shortest_session_on(kind.backend)),
      kind_(kind),
      nodes_(nodes),
      members_(static_cast<std::size_t>(request.members)) {}

simulate::StoreSettings SimulatedServers::settings_of(const simulate::SimulatedStore& kind,
                                                      const deployment::StoreRequest& request,
                                                      bool is_first) {
  using deployment::NotOffered;
  using simulate::Persistence;
  constexpr auto kUnplayable = NotStarted::Why::unplayable;
  if (request.sharded) throw NotOffered("not simulated: Redis Cluster", kUnplayable);
  simulate::StoreSettings settings{.redis = {.persistence = Persistence::none, .may_die = true},
                                   .members = request.members,
                                   .durable = request.setup != Setup::volatile_};
  if (!is_first) return settings;
  settings.redis.replicas = request.replicas;
  switch (request.setup) {
    case Setup::durable:
      if (kind.only_in_memory) {
        throw NotOffered(fmt::format("{} keeps nothing on disk", kind.backend));
      }
      settings.redis.persistence = Persistence::always;
      break;
    case Setup::unsynced:
      settings.redis.persistence = Persistence::everysec;
      break;
    case Setup::replicated:
      if (kind.only_in_memory) throw NotOffered(fmt::format("{} has no replicas", kind.backend));
      settings.redis.replicas = std::max(request.replicas, 1);
      break;
    case Setup::watched:
      throw NotOffered("not simulated: Sentinels", kUnplayable);
    case Setup::pooled:
      throw NotOffered("not simulated: poolers", kUnplayable);
    case Setup::load:
    case Setup::shared:
    case Setup::volatile_:
    case Setup::clocked:
    case Setup::cramped:
    case Setup::split:
    case Setup::sharded:
      break;
  }
  return settings;
}

/// A line is on the way of its client's connections, so it does not show in the URLs.
Endpoints SimulatedServers::endpoints(const std::vector<std::uint16_t>& ports) const {
  const bool of_members = members_ > 1;
  std::vector<std::string> urls;
  for (const auto& node : nodes_) {
    urls.push_back(of_members ? kind_.url_of(node->number, ports) : kind_.url_of(node->number));
  }
  return {{std::string(kind_.backend), std::move(urls)}};
}

std::vector<std::uint16_t> SimulatedServers::ports() const {
  std::vector<std::uint16_t> ports;
  for (const auto& node : nodes_) ports.push_back(static_cast<std::uint16_t>(node->number));
  return ports;
}

std::string SimulatedServers::struck() const {
  if (nodes_.size() == 1) return PrivateStore::struck();
  return fmt::format("one of its {} nodes", nodes_.size());
}

void SimulatedServers::restart() {
  first().kill();
  PlayClock::sleep_for(kStart);
  first().restart();
  PlayClock::sleep_for(kStart);
}

void SimulatedServers::fill_memory(const std::string& key, const std::string& policy) {
  const auto is_there = [&] {
    const std::vector<std::string> keys = first().keys();
    return std::ranges::find(keys, key) != keys.end();
  };
  // Which key goes first depends on the seed, but all go in the end.
  while (is_there() && first().evict(policy == "volatile-ttl")) {
  }
}

/// Of a cluster one follower is cut off: the others have what is acknowledged.
void SimulatedServers::cut_replication() {
  if (members_ == 1) PrivateStore::cut_replication();
}

void SimulatedServers::fail_over() {
  kill_leader();
  replace_leader();
}

void SimulatedServers::end_session(const std::string& key) {
  if (!first().end_session(key)) throw Failure("nobody holds the lock");
}

void SimulatedServers::restart_member(std::size_t member) {
  if (member == this->member(true)) return fail_over();
  first().restart_follower(member);
  PlayClock::sleep_for(kStart);
}

void SimulatedServers::freeze_leader() {
  first().depose_leader();
  leader_frozen_ = true;
  replace_leader();
}

void SimulatedServers::thaw_leader() {
  leader_frozen_ = false;
  first().resume_deposed();
}

void SimulatedServers::replace_leader() {
  PlayClock::sleep_for(simulate::StoreServer::kElection);
  first().fail_over();
  PlayClock::sleep_for(kStart);
}

void SimulatedServers::revive_node(std::size_t node) {
  nodes_.at(node)->restart();
  PlayClock::sleep_for(kStart);
}

std::string SimulatedRedis::value_of(const std::string& key) {
  return redis().ask({"GET", key}).text;
}

std::uintmax_t SimulatedRedis::crash_host() {
  const std::size_t lost = redis().unsynced();
  redis().kill();
  redis().restart();
  PlayClock::sleep_for(kStart);
  return lost;
}

void SimulatedRedis::cut_replication() {
  for (int replica = 0; replica < replicas_; ++replica) {
    redis().cut_off(static_cast<std::size_t>(replica));
  }
}

void SimulatedRedis::replace_leader() {
  PlayClock::sleep_for(kStart);
  redis().promote(0);
  PlayClock::sleep_for(kStart);
}

}  // namespace lockbench::hazards

#include "hazards/server_pool.h"

#include <fmt/format.h>

namespace lockbench::hazards {
namespace {

using Started = tl::expected<std::shared_ptr<PrivateStore>, NotStarted>;

constexpr int kNodes = 5, kMembers = 3, kReplicas = 2;

Started start(const Descriptor& strategy, deployment::LocalHost& host, Setup setup) {
  const auto* const kind = deployment::find_private_store_kind(strategy.backend);
  if (kind == nullptr && setup != Setup::shared) {
    return tl::unexpected(NotStarted{"it has no server", NotStarted::Why::never_needed});
  }
  if (kind == nullptr) return std::make_shared<PrivateStore>(strategy.backend);
  const bool cluster = kind->clusters && (setup == Setup::replicated || setup == Setup::split);
  return deployment::start_private_store(
      *kind, host,
      {.setup = setup,
       .nodes = strategy.traits.nodes > 1 ? kNodes : 1,
       .members = cluster ? kMembers : 1,
       .replicas = strategy.traits.needs_replicas ? kReplicas : 0});
}

}  // namespace

tl::expected<std::unique_ptr<ServerPool>, std::string> ServerPool::open(Options options) {
  std::unique_ptr<ServerPool> pool(new ServerPool);
  pool->client_program_ =
      options.client_program.empty() ? "/proc/self/exe" : std::move(options.client_program);
  auto host = deployment::LocalHost::open(options.tls);
  if (!host) return tl::unexpected(host.error());
  pool->host_ = *std::move(host);
  auto counter = deployment::start_private_store(*deployment::find_private_store_kind("redis"),
                                                 *pool->host_, {.setup = Setup::shared});
  if (!counter) return tl::unexpected(counter.error().reason);
  pool->counter_url_ = (*counter)->urls().front();
  pool->counter_ = *std::move(counter);
  return pool;
}

Started ServerPool::store(const Descriptor& strategy, Setup setup) {
  if (setup != Setup::shared) return start(strategy, *host_, setup);
  const std::string kind = server_set(strategy) + (strategy.traits.nodes > 1 ? "-quorum" : "");
  const std::scoped_lock lock(mutex_);
  auto found = shared_.find(kind);
  if (found == shared_.end()) {
    found = shared_.emplace(kind, start(strategy, *host_, setup)).first;
  }
  return found->second;
}

}  // namespace lockbench::hazards

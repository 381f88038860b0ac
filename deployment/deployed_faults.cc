#include "deployment/deployed_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "deployment/backends.h"

namespace lockbench::cli {
namespace {

using Done = tl::expected<void, std::string>;
using Servers = std::vector<testbed::Server*>;

/// Those that the fault concerns: of several nodes the last ones, else all that are the store.
Servers struck(const Site& site, const loadgen::Fault& fault) {
  const Servers& all = site.servers;
  if (fault.kind == loadgen::FaultKind::node_kill ||
      fault.kind == loadgen::FaultKind::node_freeze) {
    const auto few = std::min(all.size(), static_cast<std::size_t>(fault.nodes));
    return {all.end() - static_cast<std::ptrdiff_t>(few), all.end()};
  }
  if (site.cluster) return all;
  if (site.group != nullptr) return {&site.group->primary()};
  // The others are there for locks that live on several.
  return {all.front()};
}

/// Side by side, as members of a cluster wait for each other. The first failure is the one to tell.
template <class Work>
Done each(const Servers& servers, Work work) {
  std::vector<std::future<Done>> begun;
  begun.reserve(servers.size());
  for (testbed::Server* server : servers) {
    begun.push_back(std::async(std::launch::async, work, std::ref(*server)));
  }
  Done done;
  for (auto& one : begun) {
    Done ended = one.get();
    if (done) done = std::move(ended);
  }
  return done;
}

Done kill_all(const Servers& servers) {
  return each(servers, [](testbed::Server& server) { return server.kill_hard(); });
}

}  // namespace

DeployedFaults::DeployedFaults(const RunOptions& options, const Deployment& deployment)
    : deployment_(deployment), rtt_(options.workload.rtt) {}

Done DeployedFaults::inject(const Descriptor& strategy, const loadgen::Fault& fault) {
  // Until it is done: an exception is a failure, too.
  const bool before = std::exchange(failed_, true);
  Done done = make(deployment_.sites.find(server_set(strategy))->second, strategy, fault);
  failed_ = before || !done;
  return done;
}

Done DeployedFaults::heal(const Descriptor& strategy, const loadgen::Fault& fault) {
  const bool before = std::exchange(failed_, true);
  Done done = mend(deployment_.sites.find(server_set(strategy))->second, fault);
  failed_ = before || !done;
  return done;
}

Done DeployedFaults::make(const Site& site, const Descriptor& strategy,
                          const loadgen::Fault& fault) {
  switch (fault.kind) {
    case loadgen::FaultKind::store_kill:
    case loadgen::FaultKind::node_kill:
      return kill_all(struck(site, fault));
    case loadgen::FaultKind::store_freeze:
    case loadgen::FaultKind::node_freeze:
      return each(struck(site, fault), [](testbed::Server& server) { return server.freeze(); });
    case loadgen::FaultKind::failover:
      return kill_leader(site, strategy);
    case loadgen::FaultKind::partition:
      for (testbed::Proxy* line : site.lines) {
        line->hold(testbed::Direction::both, testbed::Connections::open_now().share(fault.share));
        // Whoever is cut off and tries again is cut off still.
        line->hold(testbed::Direction::both, testbed::Connections::from_now_on());
      }
      return {};
    case loadgen::FaultKind::delay:
      for (testbed::Proxy* line : site.lines) line->delay((rtt_ + fault.delay + Duration(1)) / 2);
      return {};
  }
  return {};
}

Done DeployedFaults::mend(const Site& site, const loadgen::Fault& fault) {
  switch (fault.kind) {
    case loadgen::FaultKind::store_kill:
    case loadgen::FaultKind::node_kill: {
      Done done =
          each(struck(site, fault), [](testbed::Server& server) { return server.restart(true); });
      if (done && site.group != nullptr) done = site.group->lead_again();
      return done;
    }
    case loadgen::FaultKind::store_freeze:
    case loadgen::FaultKind::node_freeze:
      return each(struck(site, fault), [](testbed::Server& server) { return server.thaw(); });
    case loadgen::FaultKind::failover:
      return replace_leader(site);
    case loadgen::FaultKind::partition:
    case loadgen::FaultKind::delay:
      for (testbed::Proxy* line : site.lines) line->heal();
      return {};
  }
  return {};
}

Done DeployedFaults::kill_leader(const Site& site, const Descriptor& strategy) {
  if (!site.cluster) return site.group->primary().kill_hard();
  const Backend* const backend = find_backend(strategy.backend);
  const auto leader =
      std::find_if(site.servers.begin(), site.servers.end(),
                   [&](const testbed::Server* server) { return backend->leads(*server); });
  if (leader == site.servers.end()) return tl::unexpected<std::string>("nobody leads the cluster");
  killed_leader_ = *leader;
  return killed_leader_->kill_hard();
}

Done DeployedFaults::replace_leader(const Site& site) {
  if (site.cluster) {
    if (killed_leader_ == nullptr) return {};
    return std::exchange(killed_leader_, nullptr)->restart(true);
  }
  if (auto done = site.group->fail_over(); !done) return done;
  for (testbed::Proxy* line : site.lines) line->lead_to(site.group->primary().port());
  return site.group->rejoin();
}

}  // namespace lockbench::cli

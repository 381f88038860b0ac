#include "cli/commands/quorum_servers.h"

#include "deployment/failure.h"
#include "strategies/thread.h"

namespace lockbench::cli {
namespace {

using deployment::attempt;
using deployment::need;

}  // namespace

tl::expected<std::unique_ptr<QuorumServers>, std::string> QuorumServers::start(
    const deployment::Request& request, Duration slow) {
  std::unique_ptr<QuorumServers> servers(new QuorumServers(request.rtt, slow));
  auto started = attempt([&] {
    servers->host_ = need(deployment::LocalHost::open(request.tls));
    const auto* const redis = deployment::find_private_store_kind("redis");
    const std::uint32_t clients = deployment::connections_for(request.clients);
    auto nodes = in_background([&] {
      return redis->start(*servers->host_, {.nodes = request.nodes, .clients = clients});
    });
    servers->replicated_ =
        redis->start(*servers->host_, {.replicas = request.replicas, .clients = clients});
    servers->nodes_ = nodes.get();
    for (auto* store : {servers->nodes_.get(), servers->replicated_.get()}) {
      store->draw_lines(*servers->host_, request.rtt);
    }
  });
  if (!started) return tl::unexpected(started.error());
  return servers;
}

Endpoints QuorumServers::endpoints(const results::Nodes& nodes) {
  // A line costs time even where it adds no delay: only those are used that are to add some.
  const bool far = rtt_ > Duration::zero();
  const auto url = [&](const deployment::PrivateStore& store, std::size_t i, bool by_line) {
    const testbed::Server& server = *store.servers().at(i);
    return by_line ? server.url_form().on({store.lines().at(i)->port()}) : server.url();
  };
  Endpoints endpoints;
  for (std::size_t i = 0; i < nodes.count; ++i) {
    const bool slow = i >= nodes.count - nodes.slow;
    endpoints["redis"].push_back(url(*nodes_, i, far || slow));
  }
  endpoints["redis-replicated"] = {url(*replicated_, 0, far)};
  return endpoints;
}

tl::expected<void, std::string> QuorumServers::inject(const results::Nodes& nodes) {
  return attempt([&] {
    const auto servers = nodes_->servers();
    // From the last node on, each with one fault.
    std::size_t next = nodes.count;
    for (std::uint64_t i = 0; i < nodes.slow; ++i) {
      nodes_->lines().at(--next)->delay(deployment::each_way(rtt_ + slow_));
    }
    for (std::uint64_t i = 0; i < nodes.frozen; ++i) need(servers.at(--next)->freeze());
    for (std::uint64_t i = 0; i < nodes.down; ++i) need(servers.at(--next)->kill_hard());
  });
}

tl::expected<void, std::string> QuorumServers::heal() {
  return attempt([&] {
    for (const auto& line : nodes_->lines()) line->heal();
    deployment::each(nodes_->servers(), [](testbed::Server& server) {
      return server.alive() ? server.thaw() : server.restart(false);
    });
    for (const testbed::Server* server : nodes_->servers()) {
      need(deployment::ask_server("redis", server->url(), std::chrono::seconds(3)));
    }
  });
}

tl::expected<std::map<std::string, results::Server>, std::string> QuorumServers::facts(
    Duration timeout, const std::stop_token& stop) const {
  std::map<std::string, results::Server> all;
  const auto add = [&](const std::string& set, const deployment::PrivateStore& store) {
    for (const testbed::Server* server : store.every_server()) {
      auto facts = need(deployment::ask_server("redis", server->url(), timeout, stop));
      all[set].version = facts.version;
      all[set].encryption = facts.encryption;
      all[set].endpoints.push_back(facts.endpoints.front());
    }
  };
  const auto asked = attempt([&] {
    add("redis", *nodes_);
    add("redis-replicated", *replicated_);
  });
  if (!asked) return tl::unexpected(asked.error());
  return all;
}

}  // namespace lockbench::cli

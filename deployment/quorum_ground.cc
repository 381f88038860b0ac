#include "deployment/quorum_ground.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "deployment/servers.h"

namespace lockbench::cli {
namespace {

using testbed::RedisServer;

/// Of housekeeping, and of clients that reconnect.
constexpr std::uint32_t kBesides = 128;

std::string url_on(std::uint16_t port) { return fmt::format("redis://127.0.0.1:{}", port); }

/// Rounded up.
Duration each_way(Duration round_trip) { return (round_trip + Duration(1)) / 2; }

}  // namespace

tl::expected<std::unique_ptr<LocalQuorum>, std::string> LocalQuorum::start(
    const RunOptions& options, int nodes) {
  std::unique_ptr<LocalQuorum> ground(new LocalQuorum(options));
  if (auto started = ground->start_servers(nodes); !started) {
    return tl::unexpected(started.error());
  }
  if (auto started = ground->start_lines(); !started) return tl::unexpected(started.error());
  return ground;
}

LocalQuorum::Done LocalQuorum::start_servers(int nodes) {
  auto testbed = testbed::Testbed::start();
  if (!testbed) return tl::unexpected(testbed.error());
  testbed_ = *std::move(testbed);
  testbed::RedisOptions server;
  server.max_clients = static_cast<std::uint32_t>(options_.workload.clients) * 2 + kBesides;
  const testbed::RedisGroupOptions with_replicas{.replicas = options_.replicas, .server = server};
  // Each fills a place of its own.
  std::vector<std::future<Done>> begun;
  begun.reserve(static_cast<std::size_t>(nodes) + 1);
  begun.push_back(std::async(std::launch::async, [this, &with_replicas]() -> Done {
    auto started = testbed::start_redis_group(*testbed_, with_replicas);
    if (!started) return tl::unexpected(started.error());
    group_ = *std::move(started);
    return {};
  }));
  nodes_.resize(static_cast<std::size_t>(nodes));
  for (Node& node : nodes_) {
    begun.push_back(std::async(std::launch::async, [this, &node, &server]() -> Done {
      auto started = testbed::start_redis(*testbed_, server);
      if (!started) return tl::unexpected(started.error());
      node.server = *std::move(started);
      return {};
    }));
  }
  Done done;
  for (auto& one : begun) {
    if (auto started = one.get(); !started) done = std::move(started);
  }
  return done;
}

LocalQuorum::Done LocalQuorum::start_lines() {
  auto pool = testbed::ProxyPool::start();
  if (!pool) return tl::unexpected(pool.error());
  pool_ = *std::move(pool);
  testbed::ProxyOptions line;
  line.delay = each_way(options_.workload.rtt);
  for (Node& node : nodes_) {
    auto proxy = testbed::start_proxy(*pool_, node.server->port(), line);
    if (!proxy) return tl::unexpected(proxy.error());
    node.line = *std::move(proxy);
  }
  auto proxy = testbed::start_proxy(*pool_, group_->primary().port(), line);
  if (!proxy) return tl::unexpected(proxy.error());
  group_line_ = *std::move(proxy);
  return {};
}

Endpoints LocalQuorum::endpoints(int nodes, const loadgen::QuorumFault& fault) {
  // A line costs time even where it adds none: only those are used that are to add some.
  const bool far = options_.workload.rtt > Duration::zero();
  Endpoints endpoints;
  for (int i = 0; i < nodes; ++i) {
    const Node& node = nodes_.at(static_cast<std::size_t>(i));
    const bool slow = i >= nodes - fault.slow;
    endpoints["redis"].push_back(url_on(far || slow ? node.line->port() : node.server->port()));
  }
  endpoints["redis-replicated"] = {url_on(far ? group_line_->port() : group_->primary().port())};
  return endpoints;
}

LocalQuorum::Done LocalQuorum::inject(int nodes, const loadgen::QuorumFault& fault) {
  // From the last one on, each with one fault.
  auto next = nodes_.begin() + nodes;
  Done done;
  const auto each = [&](int count, auto&& harm) {
    for (int i = 0; i < count && done; ++i) done = harm(*--next);
  };
  each(fault.slow, [&](Node& node) -> Done {
    node.line->delay(each_way(options_.workload.rtt + options_.quorum.slow));
    return {};
  });
  each(fault.frozen, [](Node& node) { return node.server->freeze(); });
  each(fault.down, [](Node& node) { return node.server->kill_hard(); });
  return done;
}

LocalQuorum::Done LocalQuorum::heal() {
  Done done;
  const auto note = [&done](const Done& step) {
    if (done) done = step;
  };
  for (Node& node : nodes_) {
    node.line->heal();
    if (node.server->alive()) {
      note(node.server->thaw());
    } else {
      note(node.server->restart(false));
    }
  }
  for (const Node& node : nodes_) {
    const auto answers = ask_server("redis", node.server->url(), std::chrono::seconds(3));
    if (!answers) note(tl::unexpected(answers.error()));
  }
  return done;
}

tl::expected<std::map<std::string, results::Server>, std::string> LocalQuorum::facts(
    Duration timeout, const std::stop_token& stop) const {
  std::map<std::string, results::Server> all;
  const auto add = [&](const std::string& set, const RedisServer& server) -> Done {
    auto facts = ask_server("redis", server.url(), timeout, stop);
    if (!facts) return tl::unexpected(facts.error());
    all[set].version = facts->version;
    all[set].endpoints.push_back(facts->endpoints.front());
    return {};
  };
  for (const Node& node : nodes_) {
    if (auto added = add("redis", *node.server); !added) return tl::unexpected(added.error());
  }
  auto added = add("redis-replicated", group_->primary());
  for (std::size_t i = 0; added && i < group_->replicas(); ++i) {
    added = add("redis-replicated", group_->replica(i));
  }
  if (!added) return tl::unexpected(added.error());
  return all;
}

}  // namespace lockbench::cli

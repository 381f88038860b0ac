#include "deployment/starter.h"

#include "deployment/fault_fit.h"

namespace lockbench::cli {
namespace {

/// Connections of housekeeping, of what clients share, for renewal and notification, and of those
/// that cancel a wait.
constexpr std::uint32_t kBesides = 128;

}  // namespace

Starter::Starter(const RunOptions& options, Deployment& deployment)
    : deployment_(deployment),
      rtt_(options.workload.rtt),
      replicas_(options.replicas),
      // A client that reconnects may be counted twice for a while.
      connections_(static_cast<std::uint32_t>(options.workload.clients) * 2 + kBesides) {}

Begun Starter::begin(const Backend& backend) {
  start_testbed();
  return std::async(std::launch::async, [this, &backend]() -> decltype(Begun().get()) {
    if (!failure_.empty()) return tl::unexpected(failure_);
    return backend.start(*deployment_.testbed, connections_);
  });
}

BegunCluster Starter::begin_cluster(const Backend& backend) {
  start_testbed();
  return std::async(std::launch::async, [this, &backend]() -> decltype(BegunCluster().get()) {
    if (!failure_.empty()) return tl::unexpected(failure_);
    return backend.start_cluster(*deployment_.testbed, kClusterMembers);
  });
}

BegunGroup Starter::begin_group() {
  start_testbed();
  return std::async(std::launch::async, [this]() -> decltype(BegunGroup().get()) {
    if (!failure_.empty()) return tl::unexpected(failure_);
    testbed::RedisGroupOptions options{.replicas = replicas_};
    options.server.max_clients = connections_;
    return testbed::start_redis_group(*deployment_.testbed, options);
  });
}

tl::expected<void, std::string> Starter::finish(BegunGroup& begun, Site& site) {
  auto started = begun.get();
  if (!started) return tl::unexpected(started.error());
  deployment_.replicated = *std::move(started);
  site.group = deployment_.replicated.get();
  site.servers.push_back(&site.group->primary());
  return {};
}

tl::expected<void, std::string> Starter::finish(BegunCluster& begun, Site& site) {
  auto started = begun.get();
  if (!started) return tl::unexpected(started.error());
  site.cluster = true;
  for (auto& server : *started) {
    site.servers.push_back(server.get());
    deployment_.own.push_back(std::move(server));
  }
  return {};
}

tl::expected<void, std::string> Starter::finish(Begun& begun, Site& site) {
  auto started = begun.get();
  if (!started) return tl::unexpected(started.error());
  site.servers.push_back(started->get());
  deployment_.own.push_back(*std::move(started));
  return {};
}

tl::expected<void, std::string> Starter::draw_lines(Site& site) {
  if (!deployment_.proxies) {
    auto proxies = testbed::ProxyPool::start();
    if (!proxies) return tl::unexpected(proxies.error());
    deployment_.proxies = std::move(*proxies);
  }
  testbed::ProxyOptions line;
  line.delay = (rtt_ + Duration(1)) / 2;  // rounded up
  for (const testbed::Server* server : site.servers) {
    auto proxy = testbed::start_proxy(*deployment_.proxies, server->port(), line);
    if (!proxy) return tl::unexpected(proxy.error());
    site.lines.push_back(proxy->get());
    deployment_.lines.push_back(std::move(*proxy));
  }
  return {};
}

void Starter::start_testbed() {
  if (deployment_.testbed || !failure_.empty()) return;
  auto testbed = testbed::Testbed::start();
  if (testbed) {
    deployment_.testbed = std::move(*testbed);
  } else {
    failure_ = testbed.error();
  }
}

}  // namespace lockbench::cli

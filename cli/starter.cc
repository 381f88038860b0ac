#include "cli/starter.h"

namespace lockbench {
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

BegunGroup Starter::begin_group() {
  start_testbed();
  return std::async(std::launch::async, [this]() -> decltype(BegunGroup().get()) {
    if (!failure_.empty()) return tl::unexpected(failure_);
    testbed::RedisGroupOptions options{.replicas = replicas_};
    options.server.max_clients = connections_;
    return testbed::start_redis_group(*deployment_.testbed, options);
  });
}

tl::expected<std::uint16_t, std::string> Starter::finish(BegunGroup& begun) {
  auto started = begun.get();
  if (!started) return tl::unexpected(started.error());
  deployment_.replicated = *std::move(started);
  return deployment_.replicated->primary().port();
}

tl::expected<std::uint16_t, std::string> Starter::finish(Begun& begun) {
  auto started = begun.get();
  if (!started) return tl::unexpected(started.error());
  deployment_.own.push_back(*std::move(started));
  return deployment_.own.back()->port();
}

tl::expected<std::uint16_t, std::string> Starter::line_to(std::uint16_t port) {
  if (rtt_ <= Duration::zero()) return port;
  if (!deployment_.proxies) {
    auto proxies = testbed::ProxyPool::start();
    if (!proxies) return tl::unexpected(proxies.error());
    deployment_.proxies = std::move(*proxies);
  }
  testbed::ProxyOptions line;
  line.delay = (rtt_ + Duration(1)) / 2;  // rounded up
  auto proxy = testbed::start_proxy(*deployment_.proxies, port, line);
  if (!proxy) return tl::unexpected(proxy.error());
  deployment_.lines.push_back(std::move(*proxy));
  return deployment_.lines.back()->port();
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

}  // namespace lockbench

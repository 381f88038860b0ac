#include "cli/servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "strategies/redis/store.h"
#include "testbed/open_files.h"
#include "testbed/programs.h"

namespace lockbench {
namespace {

using Done = tl::expected<void, std::string>;

/// Connections of housekeeping, and of what clients share: renewal and notification.
constexpr std::uint32_t kClientsBesides = 128;

bool needs(const std::vector<Selected>& selected, std::string_view backend) {
  return std::any_of(selected.begin(), selected.end(),
                     [&](const Selected& one) { return one.strategy->backend == backend; });
}

/// The URL of a private Redis, started now.
tl::expected<std::string, std::string> start_private_redis(const RunOptions& options,
                                                           Deployment& deployment) {
  if (!deployment.testbed) {
    auto testbed = testbed::Testbed::start();
    if (!testbed) return tl::unexpected(testbed.error());
    deployment.testbed = std::move(*testbed);
  }
  testbed::RedisOptions redis;
  // A client that reconnects may be counted twice for a while.
  redis.max_clients = static_cast<std::uint32_t>(options.workload.clients) * 2 + kClientsBesides;
  auto server = testbed::start_redis(*deployment.testbed, redis);
  if (!server) return tl::unexpected(server.error());
  deployment.own.push_back(std::move(*server));
  return deployment.own.back()->url();
}

/// The URL of a line of that length to the private Redis that was started last.
tl::expected<std::string, std::string> lengthen_line(Duration rtt, Deployment& deployment) {
  if (!deployment.proxies) {
    auto proxies = testbed::ProxyPool::start();
    if (!proxies) return tl::unexpected(proxies.error());
    deployment.proxies = std::move(*proxies);
  }
  testbed::ProxyOptions line;
  line.delay = (rtt + Duration(1)) / 2;  // rounded up
  auto proxy = testbed::start_proxy(*deployment.proxies, deployment.own.back()->port(), line);
  if (!proxy) return tl::unexpected(proxy.error());
  deployment.lines.push_back(std::move(*proxy));
  return fmt::format("redis://127.0.0.1:{}", deployment.lines.back()->port());
}

Done provide_redis(const RunOptions& options, Deployment& deployment, const std::stop_token& stop) {
  std::vector<std::string> urls = options.redis;
  if (urls.empty()) {
    auto url = start_private_redis(options, deployment);
    if (!url) return tl::unexpected(url.error());
    urls.push_back(std::move(*url));
  }
  results::Server facts;
  for (const std::string& url : urls) {
    auto server = ask_redis(url, options.workload.strategy.command_timeout, stop);
    if (!server) return tl::unexpected(server.error());
    facts.version = server->version;
    facts.endpoints.push_back(server->endpoints.front());
  }
  if (options.redis.empty() && options.workload.rtt > Duration::zero()) {
    auto url = lengthen_line(options.workload.rtt, deployment);
    if (!url) return tl::unexpected(url.error());
    urls = {std::move(*url)};
  }
  deployment.facts["redis"] = facts;
  deployment.endpoints["redis"] = std::move(urls);
  return {};
}

/// The counter lives apart from the locks, so that its traffic does not slow them, unless the
/// user's one Redis is all there is.
Done provide_counter(const RunOptions& options, Deployment& deployment,
                     const std::stop_token& stop) {
  if (options.counter_redis) {
    deployment.counter_url = *options.counter_redis;
  } else if (!options.redis.empty()) {
    deployment.counter_url = options.redis.front();
  } else {
    auto url = start_private_redis(options, deployment);
    if (!url) return tl::unexpected(url.error());
    deployment.counter_url = std::move(*url);
  }
  auto server = ask_redis(deployment.counter_url, options.workload.strategy.command_timeout, stop);
  if (!server) return tl::unexpected(server.error());
  deployment.facts["counter"] = std::move(*server);
  return {};
}

/// Takes the strategies of a backend out of the plan.
tl::expected<void, UsageError> skip(std::string_view backend, const std::string& reason,
                                    std::vector<Selected>& selected,
                                    std::vector<results::Skipped>& skipped) {
  for (const auto& [strategy, named] : selected) {
    if (strategy->backend != backend) continue;
    if (named) {
      return tl::unexpected(
          UsageError{fmt::format("{} cannot run here: {}", strategy->name, reason)});
    }
    skipped.push_back({std::string(strategy->name), reason});
  }
  std::erase_if(selected, [&](const Selected& one) { return one.strategy->backend == backend; });
  if (selected.empty()) {
    return tl::unexpected(UsageError{fmt::format("nothing can run here: {}", reason)});
  }
  return {};
}

/// What a server that can be used answers to PING.
Done check_answer(const std::string& display, const StoreResult<redis::Reply>& reply) {
  if (reply) {
    if (reply->is_text("PONG")) return {};
    return tl::unexpected(fmt::format("{}: not a Redis: it answers PING otherwise", display));
  }
  const std::string& error = reply.error().message;
  // Who is known, and may not even do that, may still be allowed to lock.
  if (reply.error().kind == StoreError::Kind::rejected && error.starts_with(display + ": NOPERM")) {
    return {};
  }
  return tl::unexpected(error);
}

}  // namespace

std::uint64_t open_files_for(const Workload& workload) {
  // Those that clients share, for renewal and notification, are few.
  constexpr std::uint64_t kBesides = 256;
  // One to the store, and one to a counter that does not live in this process.
  std::uint64_t each = workload.resource == Resource::memory ? 1 : 2;
  // And both ends of its connection in the proxy.
  if (workload.rtt > Duration::zero()) each += 2;
  return static_cast<std::uint64_t>(workload.clients) * each + kBesides;
}

Done can_serve(std::string_view backend) {
  if (backend != "redis") return {};
  const auto program = testbed::find_program(testbed::kRedisServer);
  if (!program) return tl::unexpected(program.error());
  return {};
}

tl::expected<results::Server, std::string> ask_redis(const std::string& url, Duration timeout,
                                                     const std::stop_token& stop) {
  const auto endpoint = redis::parse_endpoint(url);
  if (!endpoint) return tl::unexpected(endpoint.error());
  const auto env = make_system_env(std::random_device()());
  const auto factory = redis::make_hiredis_factory();
  const auto connection = factory->make(*endpoint, timeout, *env);
  if (auto connected = connection->connect(stop); !connected) {
    return tl::unexpected(connected.error().message);
  }
  const std::string display = endpoint->display();
  if (auto usable = check_answer(display, connection->call({"PING"}, stop)); !usable) {
    return tl::unexpected(usable.error());
  }
  // A user who may lock need not be allowed to ask for INFO.
  const auto facts = redis::make_store(*endpoint, *factory, timeout)->facts();
  return results::Server{facts ? facts->version : "unknown", {display}};
}

tl::expected<Deployment, UsageError> deploy(const RunOptions& options,
                                            std::vector<Selected>& selected,
                                            std::vector<results::Skipped>& skipped,
                                            const std::stop_token& stop) {
  const bool counter = options.workload.resource != Resource::memory;
  Deployment deployment;
  if (needs(selected, "redis") || counter) {
    const auto raised = testbed::raise_open_file_limit(open_files_for(options.workload));
    if (!raised) {
      return tl::unexpected(UsageError{fmt::format("--clients: {}", raised.error())});
    }
  }
  if (needs(selected, "redis")) {
    if (const auto provided = provide_redis(options, deployment, stop); !provided) {
      // Whoever names a server wants that server, not a comparison without it.
      if (!options.redis.empty()) {
        return tl::unexpected(UsageError{fmt::format("--redis: {}", provided.error())});
      }
      auto done = skip("redis", provided.error(), selected, skipped);
      if (!done) return tl::unexpected(done.error());
    }
  }
  if (counter) {
    if (const auto provided = provide_counter(options, deployment, stop); !provided) {
      return tl::unexpected(UsageError{fmt::format("the counter's server: {}", provided.error())});
    }
  }
  return deployment;
}

}  // namespace lockbench

#include "tests/full/timing/timed.h"

#include <iostream>
#include <optional>
#include <stdexcept>

#include "deployment/failure.h"
#include "strategies/duration.h"
#include "testbed/servers/kinds.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"
#include "tests/support/stalls.h"

namespace lockbench::test {
namespace {

std::unique_ptr<testbed::Server> start(std::string_view backend) {
  using deployment::need;
  if (backend == "memcached") return need(testbed::start_memcached(shared_testbed()));
  if (backend == "mysql") return need(testbed::start_mariadb(shared_testbed()));
  if (backend == "postgres") return need(testbed::start_postgres(shared_testbed()));
  if (backend == "zookeeper") return need(testbed::start_zookeeper(shared_testbed()));
  if (backend == "etcd") return need(testbed::start_etcd(shared_testbed()));
  return own_redis();
}

/// Empty if the machine stalled too long to decide.
std::optional<bool> keeps(Duration taken, Duration bound) {
  constexpr Duration kTooMuch = seconds(5);
  // The allowance for a busy machine on an upper bound.
  const Duration most = seconds(1) + 4 * stalls->worst();
  if (most <= kTooMuch) return taken <= bound + most;
  std::cout << "inconclusive: the machine stood still, so that a bound is " << format_duration(most)
            << " too long\n";
  return std::nullopt;
}

}  // namespace

Timed::Timed(const Descriptor& strategy, const StrategyOptions& options)
    : strategy_(strategy), options_(options) {
  constexpr int kNodes = 5;
  std::vector<std::string> urls;
  for (int i = 0; i < (strategy.traits.nodes > 1 ? kNodes : 1); ++i) {
    servers_.push_back(start(strategy.backend));
    urls.push_back(servers_.back()->url());
  }
  endpoints_[std::string(strategy.backend)] = std::move(urls);
}

TimedClient Timed::client() {
  TimedClient client;
  client.system = make_system_env(static_cast<std::uint64_t>(++clients_));
  client.env = std::make_unique<TracingEnv>(*client.system);
  client.lock = make_strategy(strategy_, {.endpoints = endpoints_,
                                          .options = options_,
                                          .env = *client.env,
                                          .services = services_,
                                          .client = clients_});
  if (const auto connected = client.lock->connect(); !connected) {
    throw std::runtime_error(connected.error().message);
  }
  return client;
}

void Timed::freeze() {
  for (const auto& server : servers_) must(server->freeze());
}

void Timed::thaw() {
  for (const auto& server : servers_) must(server->thaw());
}

bool in_time(Duration taken, Duration bound) { return keeps(taken, bound).value_or(true); }
bool is_late(Duration taken, Duration bound) { return !keeps(taken, bound).value_or(false); }

}  // namespace lockbench::test

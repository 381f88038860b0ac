#include <fnmatch.h>

#include <algorithm>
#include <iterator>

#include "cli/options/load_options.h"
#include "loadgen/cluster/link.h"
#include "strategies/registry.h"

// What the options of a load mean together, and which contradict each other.

namespace lockbench::cli {
namespace {

using loadgen::LockOrder;

constexpr std::size_t kMostPoints = 100;

/// Whether one of the selected strategies is of that store.
bool is_selected(std::string_view store, const std::vector<std::string>& patterns) {
  return patterns.empty() || std::ranges::any_of(all_strategies(), [&](const Descriptor* strategy) {
           return strategy->backend == store &&
                  std::ranges::any_of(patterns, [&](const std::string& pattern) {
                    return matches(pattern, strategy->name);
                  });
         });
}

}  // namespace

std::vector<loadgen::Workload> LoadOptions::points() const {
  std::vector<loadgen::Workload> all;
  const auto counts = client_counts.empty() ? std::vector{workload.clients} : client_counts;
  std::vector<std::optional<double>> each_rate(rates.begin(), rates.end());
  if (rates.empty()) each_rate = {workload.rate};
  std::vector<std::optional<int>> each_pool(pools.begin(), pools.end());
  if (pools.empty()) each_pool = {workload.pool};
  for (const loadgen::NamedLoad load : loads) {
    for (const int clients : counts) {
      for (const std::optional<double>& rate : each_rate) {
        for (const std::optional<int>& pool : each_pool) {
          loadgen::Workload given = workload;
          given.clients = clients;
          given.rate = rate;
          given.pool = pool;
          std::ranges::move(loadgen::points_of(load, given, decided), std::back_inserter(all));
        }
      }
    }
  }
  return all;
}

bool matches(const std::string& pattern, std::string_view name) {
  return pattern == "all" || fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
}

int rank_count() {
  const auto launched = loadgen::cluster::launched();
  return launched ? launched->size : 1;
}

std::vector<std::string> LoadOptions::servers_of(std::string_view store) const {
  const auto urls = servers.find(store);
  return urls == servers.end() ? std::vector<std::string>() : urls->second;
}

void LoadOptions::check_several_locks(const OptionList& options) const {
  if (workload.locks_per_section > 1 && workload.key_per_client) {
    throw UsageError(
        "--locks-per-section requires --keys N: with --keys per-client, each client has one lock");
  }
  if (workload.locks_per_section > workload.keys) {
    throw UsageError("--locks-per-section {0} requires --keys {0} or more",
                     workload.locks_per_section);
  }
  options.needs("lock-order", workload.has_transactions(),
                "--locks-per-section of 2 or more, or --trace");
  const bool can_deadlock = workload.has_transactions() && workload.lock_order == LockOrder::drawn;
  options.needs("deadlock-timeout", can_deadlock, "--lock-order drawn");
}

void LoadOptions::complete_keys(const OptionList& options) {
  if (workload.key_skew > 0 && workload.key_per_client) {
    throw UsageError("--key-skew requires --keys N: with --keys per-client no key is chosen");
  }
  if (workload.hot_set && workload.key_skew > 0) {
    throw UsageError("--hot-set cannot be combined with --key-skew");
  }
  if (workload.hot_set && (workload.key_per_client || workload.hot_set->keys >= workload.keys)) {
    throw UsageError("--hot-set requires --keys N with N above its {} keys",
                     workload.hot_set->keys);
  }
  if (!workload.trace) return;
  for (const char* const name :
       {"keys", "key-skew", "hot-set", "shared-share", "locks-per-section"}) {
    if (!options.given(name)) continue;
    throw UsageError("--{} cannot be combined with --trace, which decides which locks are taken",
                     name);
  }
  using loadgen::NamedLoad;
  const bool demand = std::ranges::count(loads, NamedLoad::demand) > 0;
  if (demand && !workload.rate) throw UsageError("--load demand requires --rate with --trace");
  workload.keys = workload.trace->keys;
}

void LoadOptions::complete_ranks(const OptionList& options) {
  const int size = rank_count();
  if (size < 2) return;
  constexpr int kHighestPort = 65'535;
  if (metrics.listen && metrics.listen->port + size - 1 > kHighestPort) {
    throw UsageError("--metrics-listen needs a port of at most {}: rank N listens on the port + N",
                     kHighestPort - size + 1);
  }
  if (options.given("resource") && workload.resource == loadgen::Resource::memory) {
    throw UsageError("--resource memory cannot be shared by {} ranks; allowed: redis, redis-fenced",
                     size);
  }
  if (workload.resource == loadgen::Resource::memory) workload.resource = loadgen::Resource::redis;
}

void LoadOptions::check_cluster() const {
  if (!servers_of("redis").empty()) {
    throw UsageError(
        "--redis-cluster cannot be combined with --redis: the URL of your cluster begins with "
        "redis+cluster://");
  }
  const auto is_far = [](const loadgen::Workload& one) { return one.rtt > Duration::zero(); };
  if (is_far(workload) || std::ranges::any_of(points(), is_far)) {
    throw UsageError(
        "--redis-cluster cannot be combined with a round trip (--rtt): its servers would lead "
        "clients past the proxy");
  }
  for (const loadgen::Fault& fault : faults) {
    if (loadgen::is_of_client(fault.kind) || fault.kind == loadgen::FaultKind::failover) continue;
    throw UsageError(
        "--redis-cluster cannot be combined with --fault {}; allowed: failover, "
        "client-pause, client-kill",
        to_string(fault.kind));
  }
}

void LoadOptions::leave_out_unused(const OptionList& options) {
  const bool counts = workload.resource != loadgen::Resource::memory;
  if (!counts && options.only_in_environment("counter-redis")) counter_redis.reset();
  for (auto& [store, urls] : servers) {
    const bool has_counter = counts && !counter_redis && store == "redis";
    const bool used = has_counter || is_selected(store, strategies);
    if (!used && options.only_in_environment(store)) urls.clear();
  }
}

void LoadOptions::complete(const OptionList& options) {
  take_clients(programs, servers, strategies);
  if (workload.keys == 0) {
    workload.key_per_client = true;
    workload.keys = 1;
  }
  options.needs("arrival", workload.rate.has_value(), "--rate");
  complete_ranks(options);
  leave_out_unused(options);
  // The user's server lists only the replicas connected now; others may be away.
  const bool all = wait_replicas == 0 && servers_of("redis").empty();
  const int waited_for = all ? replicas : wait_replicas;
  if (waited_for > 0) workload.strategy.wait_replicas = waited_for;
  if (counter_redis && workload.resource == loadgen::Resource::memory) {
    throw UsageError("--counter-redis requires --resource redis or redis-fenced");
  }
  complete_keys(options);
  check_several_locks(options);
  for (const auto& [store, urls] : servers) {
    if (urls.empty()) continue;
    if (workload.rtt > Duration::zero()) {
      throw UsageError("--rtt cannot be combined with --{}: it delays private servers only", store);
    }
    if (!tls) continue;
    throw UsageError(
        "--tls cannot be combined with --{}: it is for private servers; for yours, the URL selects "
        "TLS",
        store);
  }
  if (redis_cluster) check_cluster();
  if (tls && counter_redis) throw UsageError("--tls cannot be combined with --counter-redis");
  options.needs("linger", metrics.listen || metrics.linger == Duration::zero(), "--metrics-listen");
  const auto& deadline = workload.strategy.renew_deadline;
  if (deadline && *deadline >= workload.ttl) {
    throw UsageError("--renew-deadline must be shorter than --ttl ({})",
                     format_duration(workload.ttl));
  }
  if (workload.rtt >= workload.strategy.command_timeout) {
    throw UsageError("--rtt must be shorter than --store-timeout ({})",
                     format_duration(workload.strategy.command_timeout));
  }
}

void RunOptions::complete(const OptionList& options) {
  if (!client_counts.empty()) workload.clients = std::ranges::max(client_counts);
  if (!rates.empty()) workload.rate = rates.front();
  if (client_counts.size() < 2) client_counts.clear();
  if (rates.size() < 2) rates.clear();
  if (!pools.empty()) workload.pool = pools.front();
  if (pools.size() < 2) pools.clear();
  options.needs("work-connection", workload.pool || !workload.work_connection, "--pool K");
  LoadOptions::complete(options);
  if (!history.empty() && output.resume) {
    throw UsageError("--history cannot be combined with --resume: it would lack the earlier runs");
  }
  if (!history.empty() && rank_count() > 1) {
    throw UsageError("--history cannot be written by {} ranks, only by one process", rank_count());
  }
  const bool limited = workload.iterations || workload.trace;
  if (limited && !options.given("duration")) workload.duration = kMaxDurationOfIterations;
  decided = {.clients = options.given("clients"),
             .hold = options.given("hold"),
             .rate = options.given("rate"),
             .rtt = options.given("rtt")};
  if (loads.empty()) {
    loads = {workload.rate ? loadgen::NamedLoad::demand : loadgen::NamedLoad::saturated};
  }
  const std::vector<loadgen::Workload> all = points();
  if (all.size() > kMostPoints) {
    throw UsageError("--rate, --clients, --pool and --load make {} loads: at most {} are allowed",
                     all.size(), kMostPoints);
  }
  for (const loadgen::Workload& point : all) {
    if (faults.empty() || point.rtt == workload.rtt) continue;
    throw UsageError("--fault cannot be combined with --load alone: give --rtt");
  }
  if (all.size() == 1) workload = all.front();
  const bool client_fault = std::ranges::any_of(
      faults, [](const loadgen::Fault& fault) { return loadgen::is_of_client(fault.kind); });
  if (client_fault && limited) {
    throw UsageError("--fault client-pause and client-kill cannot be combined with {}",
                     workload.trace ? "--trace" : "--iterations");
  }
  const bool alone = rank_count() < 2;  // ranks end at an agreed time
  // A fixed time is too short for the verdict of most locks that are slow or rarely contended. The
  // times of faults refer to the length of the run.
  const bool contends = alone && workload.clients > 1 && !workload.key_per_client;
  if (contends && !limited && faults.empty() && !options.given("duration")) {
    workload.settles_after = workload.duration;
    workload.duration = std::max(workload.duration, kLongestByDefault);
  }
  faults = must(loadgen::timetable(std::move(faults), workload.duration), "--fault");
}

}  // namespace lockbench::cli

#include "cli/console/deploy.h"

#include <algorithm>

#include "cli/console/ranks.h"
#include "testbed/process/process_tree.h"

namespace lockbench::cli {
namespace {

using deployment::each;
using deployment::PrivateStore;
using Done = tl::expected<void, std::string>;
using loadgen::FaultKind;

bool is_glob(std::string_view pattern) {
  return pattern == "all" || pattern.find_first_of("*?[") != std::string_view::npos;
}

UsageError no_such_strategy(const std::string& pattern,
                            const std::vector<const Descriptor*>& catalogue) {
  // Probably a value whose option is missing; its secret must not be shown.
  if (pattern.find("://") != std::string::npos || pattern.find('=') != std::string::npos) {
    return UsageError(
        "a URL is not a strategy: servers are given with --redis URL, --postgres DSN, --zookeeper "
        "HOSTS");
  }
  if (is_glob(pattern)) {
    return UsageError("no strategy matches \"{}\" (lockbench list shows all)", pattern);
  }
  return UsageError("no such strategy \"{}\"{} (lockbench list shows all)", pattern,
                    did_you_mean(pattern, results::each_of(catalogue, &Descriptor::name)));
}

/// --wait: refused if a named strategy does not support it. Others keep their own policy.
void check_waiting(const std::vector<Selected>& selected, const std::optional<WaitPolicy>& wait) {
  if (!wait) return;
  for (const auto& [strategy, named] : selected) {
    const auto& choices = strategy->traits.waiting_choices;
    if (!named || std::ranges::count(choices, wait->kind) > 0) continue;
    const auto allowed =
        results::each_of(choices, [](WaitKind kind) { return std::string(to_string(kind)); });
    throw UsageError("--wait: {} cannot wait by {}: {}", strategy->name, to_string(wait->kind),
                     allowed.empty() ? std::string("its waiting policy is fixed")
                                     : fmt::format("allowed: {}", fmt::join(allowed, ", ")));
  }
}

/// --renew: refused if a named strategy cannot be renewed by a timer, or if the interval is not
/// shorter than the TTL.
void check_renewal(const std::vector<Selected>& selected, const std::optional<RenewPolicy>& renew,
                   Duration ttl) {
  if (!renew || renew->kind == RenewPolicy::Kind::off) return;
  if (renew->kind == RenewPolicy::Kind::every && renew->period >= ttl) {
    throw UsageError("--renew: the renewal interval ({}) must be shorter than the TTL ({})",
                     format_duration(renew->period), format_duration(ttl));
  }
  for (const auto& [strategy, named] : selected) {
    if (!named || strategy->traits.renewable) continue;
    throw UsageError("--renew: {} cannot be renewed by a timer: only off is allowed",
                     strategy->name);
  }
}

bool has(const LoadOptions& options, std::initializer_list<FaultKind> kinds) {
  return std::ranges::any_of(options.faults, [&](const loadgen::Fault& fault) {
    return std::ranges::count(kinds, fault.kind) > 0;
  });
}

/// Moves the strategies that `concerns` selects to `skipped`. An error if one was named, or if none
/// is left.
Done skip(const std::function<bool(const Descriptor&)>& concerns, std::string_view reason,
          std::vector<Selected>& selected, std::vector<results::Skipped>& skipped) {
  for (const auto& [strategy, named] : selected) {
    if (!concerns(*strategy)) continue;
    if (named) {
      return tl::unexpected(fmt::format("{} cannot run here: {}", strategy->name, reason));
    }
    skipped.push_back({std::string(strategy->name), std::string(reason)});
  }
  std::erase_if(selected, [&](const Selected& one) { return concerns(*one.strategy); });
  if (selected.empty()) return tl::unexpected(fmt::format("nothing can run here: {}", reason));
  return {};
}

/// What a control without a lock cannot do under this load; empty: nothing.
std::string needs_lock(const LoadOptions& options) {
  const loadgen::Workload& load = options.workload;
  if (load.has_transactions()) return "it takes no lock: a section of several needs some";
  if (!options.faults.empty()) return "it takes no lock: a fault finds no holder";
  if (load.resource != loadgen::Resource::memory)
    return "it takes no lock: it is the counter itself";
  if (Ranks::joined() != nullptr)
    return "it takes no lock: its updates cannot be added up over ranks";
  return {};
}

/// Why a strategy cannot run on any servers; empty if it can.
std::string unable(const Descriptor& strategy, const LoadOptions& options) {
  if (!strategy.not_built.empty()) return std::string(strategy.not_built);
  if (strategy.traits.updates) {
    if (std::string reason = needs_lock(options); !reason.empty()) return reason;
  }
  if (options.workload.shared_share > 0 && !strategy.traits.shared) {
    return "it has no shared mode, which --shared-share asks for";
  }
  for (const loadgen::Fault& fault : options.faults) {
    if (std::string reason = unfit(fault, strategy, options); !reason.empty()) return reason;
  }
  return {};
}

Done skip_unable(const LoadOptions& options, std::vector<Selected>& selected,
                 std::vector<results::Skipped>& skipped) {
  for (const Selected& one : std::vector(selected)) {
    const std::string reason = unable(*one.strategy, options);
    if (reason.empty()) continue;
    const auto concerns = [&](const Descriptor& other) { return &other == one.strategy; };
    if (Done done = skip(concerns, reason, selected, skipped); !done) return done;
  }
  return {};
}

/// Faults strike private servers only, and a partition must cut off some client.
Done check_faults(const LoadOptions& options, const std::vector<Selected>& selected) {
  for (const loadgen::Workload& point : options.points()) {
    for (const loadgen::Fault& fault : options.faults) {
      if (fault.kind != FaultKind::partition || fault.share * point.clients >= 1) continue;
      return tl::unexpected(fmt::format("--fault: {} cuts off none of the {} client{} of load {}",
                                        fault.to_string(), point.clients,
                                        point.clients == 1 ? "" : "s", point.load));
    }
  }
  const auto of_servers = std::ranges::find_if(options.faults, [](const loadgen::Fault& fault) {
    return !loadgen::is_of_client(fault.kind);
  });
  for (const Selected& one : selected) {
    if (of_servers == options.faults.end()) break;
    if (options.servers_of(one.strategy->backend).empty()) continue;
    return tl::unexpected(
        fmt::format("--fault: {} strikes private servers only: it cannot be combined with --{}",
                    of_servers->to_string(), one.strategy->backend));
  }
  return {};
}

/// The servers that the fault strikes: the last nodes, for a fault of nodes, or the whole store.
PrivateStore::Servers struck(const PrivateStore& store, const loadgen::Fault& fault) {
  if (fault.kind != FaultKind::node_kill && fault.kind != FaultKind::node_freeze) {
    return store.whole_store();
  }
  const PrivateStore::Servers all = store.servers();
  const auto few = std::min(all.size(), static_cast<std::size_t>(fault.nodes));
  return {all.end() - static_cast<std::ptrdiff_t>(few), all.end()};
}

}  // namespace

std::vector<const Descriptor*> with_absent(std::vector<const Descriptor*> built) {
  const auto absent = absent_strategies();
  built.insert(built.end(), absent.begin(), absent.end());
  return built;
}

std::vector<Selected> select_strategies(const std::vector<std::string>& patterns,
                                        const std::vector<const Descriptor*>& catalogue) {
  std::vector<Selected> selected;
  for (const std::string& pattern : patterns.empty() ? std::vector<std::string>{"all"} : patterns) {
    bool found = false;
    for (const Descriptor* strategy : catalogue) {
      if (!matches(pattern, strategy->name)) continue;
      found = true;
      const bool named = !is_glob(pattern);
      const auto same = std::ranges::find(selected, strategy, &Selected::strategy);
      if (same == selected.end()) {
        selected.push_back({strategy, named});
      } else {
        same->named = same->named || named;
      }
    }
    if (!found) throw no_such_strategy(pattern, catalogue);
  }
  return selected;
}

std::vector<Selected> select_for_load(const LoadOptions& options,
                                      std::vector<const Descriptor*> built) {
  std::vector<Selected> selected =
      select_strategies(options.strategies, with_absent(std::move(built)));
  const StrategyOptions& asked = options.workload.strategy;
  check_waiting(selected, asked.wait);
  check_renewal(selected, asked.renew, options.workload.ttl);
  return selected;
}

deployment::Request request_of(const LoadOptions& options) {
  const loadgen::Workload& load = options.workload;
  int clients = load.clients;
  Duration far_rtt{};
  for (const loadgen::Workload& point : options.points()) {
    clients = std::max(clients, point.clients);
    if (point.rtt != load.rtt) far_rtt = point.rtt;
  }
  return {
      .given = options.servers,
      .counter = load.resource != loadgen::Resource::memory,
      .given_counter = options.counter_redis,
      .clients = clients,
      .nodes = load.nodes,
      .replicas = options.replicas,
      .wait_replicas = load.strategy.wait_replicas,
      .command_timeout = load.strategy.command_timeout,
      .rtt = load.rtt,
      .far_rtt = far_rtt,
      .lines = options.through_proxies || has(options, {FaultKind::partition, FaultKind::delay}),
      .clusters = has(options, {FaultKind::failover, FaultKind::node_kill, FaultKind::node_freeze}),
      .sharded = options.redis_cluster,
      .failover = has(options, {FaultKind::failover}),
      .tls = options.tls};
}

std::string unfit(const loadgen::Fault& fault, const Descriptor& strategy,
                  const LoadOptions& options) {
  if (loadgen::is_of_client(fault.kind)) {
    const bool shared = strategy.backend != "local";
    return shared ? "" : "it works within one process: no client can fail alone";
  }
  const auto* const kind = deployment::find_private_store_kind(strategy.backend);
  if (kind == nullptr) {
    return fmt::format("it has no server that {} could strike", fault.to_string());
  }
  const bool quorum = strategy.traits.nodes > 1;
  switch (fault.kind) {
    case FaultKind::store_kill:
    case FaultKind::store_freeze:
      if (!quorum) return {};
      return fmt::format("it runs on several servers; {} needs a single one: use {}",
                         to_string(fault.kind),
                         to_string(fault.kind == FaultKind::store_kill ? FaultKind::node_kill
                                                                       : FaultKind::node_freeze));
    case FaultKind::node_kill:
    case FaultKind::node_freeze: {
      const int members = kind->clusters ? deployment::kClusterMembers : 1;
      const int nodes = quorum ? options.workload.nodes : members;
      if (nodes <= 1) {
        return fmt::format("it runs on one server; {} needs several", to_string(fault.kind));
      }
      if (fault.nodes <= nodes) return {};
      return fmt::format("{} strikes more than its {} nodes", fault.to_string(), nodes);
    }
    case FaultKind::failover:
      if (quorum) return "its servers are independent: none of them takes another's place";
      if (kind->clusters) return {};
      if (!kind->replicates) {
        return fmt::format("no other server takes the place of a private {}", kind->name);
      }
      if (options.replicas < 1) return "failover needs a replica: --replicas 1 or more";
      return {};
    case FaultKind::partition:
    case FaultKind::delay:
    case FaultKind::client_pause:
    case FaultKind::client_kill:
      return {};
  }
  return {};
}

tl::expected<deployment::Deployment, std::string> deploy(const LoadOptions& options,
                                                         std::vector<Selected>& selected,
                                                         std::vector<results::Skipped>& skipped,
                                                         const std::stop_token& stop) {
  Done ready = skip_unable(options, selected, skipped);
  if (ready) ready = check_faults(options, selected);
  if (!ready) return tl::unexpected(ready.error());
  const std::vector<const Descriptor*> strategies = results::each_of(selected, &Selected::strategy);
  const auto drop = [&](const auto& concerns, std::string_view reason) {
    return skip(concerns, reason, selected, skipped);
  };
  return deployment::deploy(request_of(options), strategies, drop, stop);
}

loadgen::RunPlan plan_on(const deployment::Deployment& servers, const std::string& run_id) {
  loadgen::RunPlan plan;
  plan.run_id = run_id;
  plan.endpoints = servers.endpoints;
  plan.counter_url = servers.counter_url;
  plan.private_cpu.of = [&servers](std::string_view set) { return servers.cpu_seconds_of(set); };
  plan.private_cpu.all = [&servers] { return servers.cpu_seconds(); };
  plan.private_cpu.of_tree = testbed::cpu_seconds_of_tree;
  plan.warms_up = [&servers](const Descriptor& strategy) { return servers.warms_up(strategy); };
  return plan;
}

tl::expected<void, std::string> FaultServers::change(const Descriptor& strategy,
                                                     const loadgen::Fault& fault, bool heals) {
  const auto work = [&] {
    PrivateStore& store = *deployment_.stores.at(server_set(strategy));
    switch (fault.kind) {
      case FaultKind::store_kill:
      case FaultKind::node_kill:
        each(struck(store, fault),
             [&](auto& server) { return heals ? server.restart(true) : server.kill_hard(); });
        if (heals) store.settle();
        return;
      case FaultKind::store_freeze:
      case FaultKind::node_freeze:
        return each(struck(store, fault),
                    [&](auto& server) { return heals ? server.thaw() : server.freeze(); });
      case FaultKind::failover:
        return heals ? store.replace_leader() : store.kill_leader();
      case FaultKind::partition:
      case FaultKind::delay:
        for (const auto& line : store.lines()) {
          if (heals) {
            line->heal();
          } else if (fault.kind == FaultKind::delay) {
            line->delay(deployment::each_way(rtt_ + fault.delay));
          } else {
            line->hold({.new_ones = false, .share = fault.share});
            // A client that is cut off and reconnects stays cut off.
            line->hold({.open = false});
          }
        }
        return;
      case FaultKind::client_pause:
      case FaultKind::client_kill:
        return;  // no server's
    }
  };
  try {
    work();
    return {};
  } catch (const std::exception& failure) {
    failed_ = true;
    return tl::unexpected<std::string>(failure.what());
  }
}

}  // namespace lockbench::cli

#include "deployment/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <set>

#include "strategies/store.h"
#include "strategies/thread.h"
#include "testbed/process/process_tree.h"
#include "testbed/servers/machine.h"

namespace lockbench::deployment {
namespace {

using Done = tl::expected<void, std::string>;
using Strategies = std::vector<const Descriptor*>;
using Started = tl::expected<std::unique_ptr<PrivateStore>, NotStarted>;

/// Servers needed together: a backend's, or the counter's.
struct WantedStore {
  const PrivateStoreKind* kind = nullptr;
  std::string set;                 ///< their name in the endpoints
  StoreRequest wanted{};           ///< for private servers
  std::vector<std::string> given;  ///< the user's URLs; empty: private servers are started
  bool quorum = false;             ///< locks live on all of them
  bool first_only = true;          ///< some locks live on the first
  bool replicated = false;         ///< the primary must have replicas
  bool for_all = false;            ///< also for locks that need no replicas
  bool sharded = false;            ///< each server has a part of the keys
  bool lines = false;              ///< proxies between clients and private servers
  std::future<Started> started{};

  bool counter() const { return set == "counter"; }
  bool concerns(const Descriptor& strategy) const {
    if (counter() || strategy.backend != kind->name) return false;
    return for_all || server_set(strategy) == set;
  }
};

/// The connections of a private server: two for each client, or fewer, down to one, if the limit of
/// open files is low; plus shared ones.
std::uint32_t connections_for(int clients) {
  // Checks before and after a run, renewal, notification, and connections that cancel a wait.
  constexpr std::uint64_t kShared = 128;
  const std::uint64_t least = static_cast<std::uint64_t>(clients) + kShared;
  // A reconnecting client may count twice for a while.
  const std::uint64_t generous = least + static_cast<std::uint64_t>(clients);
  return static_cast<std::uint32_t>(std::clamp(testbed::clients_possible(), least, generous));
}

std::vector<std::string> first_of(std::vector<std::string> urls) {
  if (urls.size() > 1) urls.resize(1);
  return urls;
}

void add_needs_of(const PrivateStoreKind& kind, const Request& request,
                  const Strategies& strategies, std::vector<WantedStore>& all) {
  const auto any = [&](auto&& trait) {
    return std::ranges::any_of(strategies, [&](const Descriptor* strategy) {
      return strategy->backend == kind.name && trait(strategy->traits);
    });
  };
  const bool plain = any([](const Traits& traits) { return !traits.needs_replicas; });
  const bool replicated = any([](const Traits& traits) { return traits.needs_replicas; });
  const bool failover = kind.replicates && request.failover && !request.sharded;
  const auto add = [&](std::string set) -> WantedStore& {
    WantedStore& need = all.emplace_back();
    need.kind = &kind;
    need.set = std::move(set);
    need.wanted.clients = connections_for(request.clients);
    need.given = request.given_for(kind.name);
    const auto is_sharded = find_store_kind(kind.name)->is_sharded;
    need.sharded = need.given.empty()
                       ? kind.shards && request.sharded
                       : is_sharded != nullptr && std::ranges::any_of(need.given, is_sharded);
    need.wanted.sharded = need.sharded;
    need.lines = request.rtt > Duration::zero() || request.lines;
    return need;
  };
  if (plain && !failover) {
    WantedStore& need = add(std::string(kind.name));
    need.quorum = any([](const Traits& traits) { return traits.nodes > 1; });
    need.first_only =
        any([](const Traits& traits) { return !traits.needs_replicas && traits.nodes <= 1; });
    if (need.quorum) need.wanted.nodes = request.nodes;
    if (kind.clusters && request.clusters) need.wanted.members = kClusterMembers;
  }
  if (replicated || (plain && failover)) {
    WantedStore& need = add(fmt::format("{}-replicated", kind.name));
    need.given = first_of(std::move(need.given));
    need.replicated = true;
    need.wanted.replicas = request.replicas;
    // A proxy leads clients to the server that takes the primary's place.
    need.for_all = failover;
    need.lines = need.lines || failover;
  }
}

std::vector<WantedStore> wanted_stores(const Request& request, const Strategies& strategies) {
  std::vector<WantedStore> all;
  for (const PrivateStoreKind* kind : private_store_kinds()) {
    add_needs_of(*kind, request, strategies, all);
  }
  if (!request.counter) return all;
  // A separate server, so that the counter's traffic does not slow the locks. If the user gives a
  // Redis but no other for the counter, the counter lives there.
  WantedStore counter{.kind = find_private_store_kind("redis"), .set = "counter"};
  counter.wanted.clients = connections_for(request.clients);
  counter.given = first_of(request.given_for("redis"));
  if (request.given_counter) counter.given = {*request.given_counter};
  all.push_back(std::move(counter));
  return all;
}

/// A server given twice would have two votes.
Done check_distinct(const WantedStore& need) {
  if (!need.quorum) return {};
  const StoreKind* const kind = find_store_kind(need.kind->name);
  std::set<std::string> seen;
  for (const std::string& url : need.given) {
    if (!kind->display(url)) continue;  // refused elsewhere
    // Compares display names, without the database: another database is not another server.
    const std::string shown = kind->make(url, {})->display();
    if (!seen.insert(shown).second) {
      return tl::unexpected(fmt::format(
          "--{}: {} is given twice: a quorum needs independent servers", kind->name, shown));
    }
  }
  return {};
}

/// Begins to start all private servers. If the testbed cannot be started, each gets that error.
void begin(std::vector<WantedStore>& wanted, bool tls, Deployment& deployment) {
  const auto own = [](const WantedStore& need) { return need.given.empty(); };
  if (std::ranges::none_of(wanted, own)) return;
  auto host = testbed::Testbed::start(tls);
  const std::string failure = host ? "" : host.error();
  if (host) deployment.host = *std::move(host);
  for (WantedStore& need : wanted) {
    if (!need.given.empty()) continue;
    need.started = in_background([&need, host = deployment.host.get(), failure]() -> Started {
      if (host == nullptr) return tl::unexpected(NotStarted{failure});
      return start_private_store(*need.kind, *host, need.wanted);
    });
  }
}

/// Reaches the first server, or in a quorum every reachable one.
tl::expected<results::Server, std::string> facts_of(const WantedStore& need,
                                                    const std::vector<std::string>& urls,
                                                    const Request& request,
                                                    std::vector<std::string>& warnings,
                                                    const std::stop_token& stop) {
  const StoreKind* const kind = find_store_kind(need.kind->name);
  results::Server facts;
  int reached = 0;
  std::string first_failure;
  for (const std::string& url : urls) {
    auto server = ask_server(kind->name, url, request.command_timeout, stop);
    const bool may_be_missing = need.quorum && !(need.first_only && facts.endpoints.empty());
    if (!server && !may_be_missing) return tl::unexpected(server.error());
    facts.endpoints.push_back(server ? server->endpoints.front()
                                     : kind->display(url).value_or("?"));
    if (!server) {
      if (first_failure.empty()) first_failure = server.error();
      warnings.push_back(
          fmt::format("one of {} nodes is missing: {}", urls.size(), server.error()));
      continue;
    }
    if (reached++ == 0) {
      facts.version = server->version;
      facts.encryption = server->encryption;
    }
    for (const std::string& warning : server->warnings) {
      facts.warnings.push_back(warning);
      warnings.push_back(warning);
    }
    if (server->version == kUnknownVersion) {
      warnings.push_back(
          fmt::format("{}: no permission to read its facts: its CPU and its restarts "
                      "are not recorded",
                      server->endpoints.front()));
    }
  }
  if (reached == 0) return tl::unexpected(first_failure);
  return facts;
}

/// Fills in the endpoints and facts of these servers. Throws Failure if they cannot be used.
void provide(WantedStore& wanted, const Request& request, Deployment& deployment,
             const std::stop_token& stop) {
  std::shared_ptr<PrivateStore> store;
  if (wanted.started.valid()) {
    Started started = wanted.started.get();
    if (!started) throw Failure(started.error().reason);
    store = *std::move(started);
  }
  std::vector<std::string> urls = store ? store->urls() : wanted.given;
  deployment.facts[wanted.set] = need(facts_of(wanted, urls, request, deployment.warnings, stop));
  if (store && wanted.lines) {
    store->draw_lines(*deployment.host, request.rtt);
    urls = store->urls();
  }
  std::vector<std::string> sets = {wanted.set};
  if (wanted.for_all) sets.emplace_back(wanted.kind->name);
  if (store && request.far_rtt > Duration::zero() && !wanted.counter()) {
    store->draw_lines(*deployment.host, request.far_rtt);
    for (const std::string& set : sets) deployment.far_endpoints[set] = store->urls();
  }
  for (const std::string& set : sets) {
    if (store) deployment.stores[set] = store;
    if (!wanted.counter()) deployment.endpoints[set] = urls;
  }
  if (wanted.counter()) deployment.counter_url = urls.front();
}

/// Why there are too few replicas, or why their number is unknown; empty if there are enough, or if
/// only the user gives their number.
std::string lacks_replicas(const WantedStore& need, const Request& request,
                           const Deployment& deployment) {
  if (!need.replicated) return {};
  const std::string& url = deployment.endpoints.at(need.set).front();
  const auto store = find_store_kind(need.kind->name)->make(url, request.command_timeout);
  const auto facts = store->facts();
  if (!facts && request.wait_replicas) return {};
  if (!facts) {
    return fmt::format("the number of replicas is unknown ({}): set --wait-replicas",
                       facts.error().message);
  }
  const std::string has = fmt::format("{} has {} replica{}", store->display(), facts->replicas,
                                      facts->replicas == 1 ? "" : "s");
  if (!request.wait_replicas) {
    return has +
           " now, and some may be away: set --wait-replicas to the number that it should have";
  }
  if (facts->replicas >= *request.wait_replicas) return {};
  return fmt::format("{}, and {} must acknowledge", has, *request.wait_replicas);
}

/// These locks need servers of which each has all keys.
Done drop_unsharded(const WantedStore& need, const Drop& drop) {
  return drop(
      [&](const Descriptor& strategy) {
        const bool whole = strategy.traits.nodes > 1 || strategy.traits.needs_replicas;
        return whole && need.concerns(strategy);
      },
      "its servers must each have all keys, and those of a Redis Cluster do not");
}

/// Provides these servers; on failure drops the strategies that need them.
Done serve(WantedStore& need, const Request& request, const Drop& drop, Deployment& deployment,
           const std::stop_token& stop) {
  if (need.sharded) {
    Done dropped = drop_unsharded(need, drop);
    if (!dropped || !need.first_only || need.replicated) return dropped;
  }
  const Done provided = attempt([&] { provide(need, request, deployment, stop); });
  if (provided) {
    const std::string lack = lacks_replicas(need, request, deployment);
    if (lack.empty()) return {};
    return drop(
        [&](const Descriptor& strategy) {
          return strategy.traits.needs_replicas && need.concerns(strategy);
        },
        lack);
  }
  if (need.counter()) {
    return tl::unexpected(
        fmt::format("{}: {}", request.given_counter ? "--counter-redis" : "the counter's server",
                    provided.error()));
  }
  // An error if the user named the server: a comparison without it would be useless.
  if (!need.given.empty()) {
    return tl::unexpected(fmt::format("--{}: {}", need.kind->name, provided.error()));
  }
  return drop([&](const Descriptor& strategy) { return need.concerns(strategy); },
              provided.error());
}

}  // namespace

std::uint64_t Deployment::bytes_moved() const {
  std::uint64_t bytes = 0;
  std::set<const PrivateStore*> counted;
  for (const auto& [set, store] : stores) {
    if (!counted.insert(store.get()).second) continue;
    for (const auto& line : store->lines()) {
      const testbed::ProxyCounts counts = line->counts();
      bytes += counts.to_server + counts.to_client;
    }
  }
  return bytes;
}

std::optional<double> Deployment::cpu_seconds_of(std::string_view set) const {
  const auto store = stores.find(set);
  return store == stores.end() ? std::nullopt : store->second->cpu_seconds();
}

double Deployment::cpu_seconds() const {
  // All servers are children of the supervisor, which reaps ended ones.
  return host ? testbed::cpu_seconds_of_tree(host->supervisor()->own_pid()).value_or(0) : 0;
}

bool Deployment::warms_up(const Descriptor& strategy) const {
  const PrivateStoreKind* const kind = find_private_store_kind(strategy.backend);
  return kind != nullptr && kind->warms_up && stores.contains(server_set(strategy));
}

std::uint64_t open_files_for(const Request& request, const Strategies& strategies) {
  // Shared connections, for renewal and notification, are few.
  constexpr std::uint64_t kShared = 256;
  std::uint64_t each = 1;
  for (const WantedStore& need : wanted_stores(request, strategies)) {
    const bool own = need.given.empty();
    std::uint64_t its = 1;
    if (need.quorum) its = own ? static_cast<std::uint64_t>(request.nodes) : need.given.size();
    if (need.sharded) its = 3;        // a connection to each shard
    if (need.lines && own) its *= 3;  // a proxy holds both ends of a connection
    each = std::max(each, its);
  }
  if (request.counter) ++each;
  return static_cast<std::uint64_t>(request.clients) * each + kShared;
}

tl::expected<void, std::string> can_serve(std::string_view backend) {
  const PrivateStoreKind* const kind = find_private_store_kind(backend);
  if (kind == nullptr) return {};
  return kind->find_program().map([](const auto&) {});
}

tl::expected<results::Server, std::string> ask_server(std::string_view backend,
                                                      const std::string& url, Duration timeout,
                                                      const std::stop_token& stop) {
  const StoreKind* const kind = find_store_kind(backend);
  if (kind == nullptr) return tl::unexpected(fmt::format("this build is without {}", backend));
  if (auto usable = kind->display(url); !usable) return tl::unexpected(usable.error());
  const auto store = kind->make(url, timeout);
  if (auto reached = store->reach(stop); !reached) {
    return tl::unexpected(reached.error().message);
  }
  const auto facts = store->facts();
  results::Server server{.version = facts ? facts->version : std::string(kUnknownVersion),
                         .endpoints = {store->display()}};
  const Secrecy secrecy = kind->secrecy == nullptr ? Secrecy{} : kind->secrecy(url);
  if (!secrecy.encryption.empty()) server.encryption = secrecy.encryption;
  if (!secrecy.advice.empty()) {
    server.warnings.push_back(fmt::format("{}: its password may cross the network unencrypted: {}",
                                          store->display(), secrecy.advice));
  }
  return server;
}

tl::expected<void, std::string> check(const Request& request, const Strategies& strategies) {
  const std::vector<WantedStore> wanted = wanted_stores(request, strategies);
  if (!wanted.empty()) {
    const auto raised = testbed::raise_open_file_limit(open_files_for(request, strategies));
    if (!raised) return tl::unexpected("--clients: " + raised.error());
  }
  for (const WantedStore& need : wanted) {
    if (auto distinct = check_distinct(need); !distinct) return distinct;
  }
  return {};
}

tl::expected<Deployment, std::string> deploy(const Request& request, const Strategies& strategies,
                                             const Drop& drop, const std::stop_token& stop) {
  if (auto checked = check(request, strategies); !checked) return tl::unexpected(checked.error());
  Deployment deployment;
  // Destroyed before the deployment: its futures wait for servers that are still starting.
  std::vector<WantedStore> wanted = wanted_stores(request, strategies);
  begin(wanted, request.tls, deployment);
  for (WantedStore& need : wanted) {
    if (auto served = serve(need, request, drop, deployment, stop); !served) {
      return tl::unexpected(served.error());
    }
  }
  return deployment;
}

}  // namespace lockbench::deployment

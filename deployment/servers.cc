#include "deployment/servers.h"

#include <fmt/format.h>

#include <algorithm>

#include "deployment/backends.h"
#include "deployment/server_needs.h"
#include "deployment/skip.h"
#include "deployment/starter.h"
#include "strategies/store.h"
#include "testbed/servers/open_files.h"

namespace lockbench::cli {
namespace {

using Done = tl::expected<void, UsageError>;

/// Nobody's servers are harmed but our own, and somebody is cut off where that is asked for.
Done check_faults(const RunOptions& options, const std::vector<Need>& wanted) {
  if (options.faults.empty()) return {};
  const int clients = options.workload.clients;
  for (const loadgen::Fault& fault : options.faults) {
    if (fault.kind != loadgen::FaultKind::partition || fault.share * clients >= 1) continue;
    return tl::unexpected(UsageError{
        fmt::format("--fault: {} cuts off none of {} clients", fault.to_string(), clients)});
  }
  for (const Need& need : wanted) {
    if (need.counter || need.given.empty()) continue;
    return tl::unexpected(
        UsageError{fmt::format("--fault: {} strikes private servers only: it does not go with {}",
                               options.faults.front().to_string(), need.backend->option)});
  }
  return {};
}

/// Reaches the first, and of a quorum all that can be reached.
tl::expected<results::Server, std::string> facts_of(const Need& need,
                                                    const std::vector<std::string>& urls,
                                                    const RunOptions& options,
                                                    std::vector<std::string>& warnings,
                                                    const std::stop_token& stop) {
  const StoreKind* const kind = find_store_kind(need.backend->name);
  results::Server facts;
  int reached = 0;
  std::string first_failure;
  for (const std::string& url : urls) {
    auto server =
        ask_server(need.backend->name, url, options.workload.strategy.command_timeout, stop);
    const bool may_be_missing = need.quorum && !(need.first_only && facts.endpoints.empty());
    if (!server && !may_be_missing) return tl::unexpected(server.error());
    facts.endpoints.push_back(server ? server->endpoints.front()
                                     : kind->display(url).value_or("?"));
    if (server) {
      if (reached++ == 0) facts.version = server->version;
      if (server->version == kUnknownVersion) {
        warnings.push_back(fmt::format(
            "{} does not tell of itself, as its user may not ask: its CPU and its restarts go "
            "unseen",
            server->endpoints.front()));
      }
    } else {
      if (first_failure.empty()) first_failure = server.error();
      warnings.push_back(
          fmt::format("one of {} nodes is missing: {}", urls.size(), server.error()));
    }
  }
  if (reached == 0) return tl::unexpected(first_failure);
  return facts;
}

/// The private servers that were begun for the need.
tl::expected<void, std::string> finish(Need& need, Starter& starter, Site& site) {
  tl::expected<void, std::string> done;
  if (need.begun_group.valid()) done = starter.finish(need.begun_group, site);
  if (done && need.begun_cluster.valid()) done = starter.finish(need.begun_cluster, site);
  for (Begun& begun : need.begun) {
    if (done) done = starter.finish(begun, site);
  }
  return done;
}

/// URLs by which clients find the site, by its lines where there are some.
std::vector<std::string> urls_to(const Site& site, const Backend& backend) {
  std::vector<std::uint16_t> ports;
  ports.reserve(site.servers.size());
  for (std::size_t i = 0; i < site.servers.size(); ++i) {
    ports.push_back(site.lines.empty() ? site.servers[i]->port() : site.lines[i]->port());
  }
  if (site.cluster) return {backend.url_on_all(ports)};
  std::vector<std::string> urls;
  urls.reserve(ports.size());
  for (const std::uint16_t port : ports) urls.push_back(backend.url_on(port));
  return urls;
}

/// What the need got, or why not.
tl::expected<void, std::string> provide(Need& need, Starter& starter, const RunOptions& options,
                                        Deployment& deployment, const std::stop_token& stop) {
  const std::string set = need.set();
  Site site;
  if (auto done = finish(need, starter, site); !done) return done;
  const bool own = need.given.empty();
  std::vector<std::string> urls = own ? urls_to(site, *need.backend) : need.given;
  auto facts = facts_of(need, urls, options, deployment.warnings, stop);
  if (!facts) return tl::unexpected(facts.error());
  deployment.facts[need.counter ? "counter" : set] = *std::move(facts);
  if (need.counter) {
    deployment.counter_url = urls.front();
    return {};
  }
  if (own && need.lines) {
    if (auto drawn = starter.draw_lines(site); !drawn) return drawn;
    urls = urls_to(site, *need.backend);
  }
  std::vector<std::string> sets = {set};
  if (need.for_all) sets.emplace_back(need.backend->name);
  for (const std::string& each : sets) {
    if (own) deployment.sites[each] = site;
    deployment.endpoints[each] = urls;
  }
  return {};
}

/// Why not; empty if there are enough, or the user says how many and the server does not.
std::string lacks_replicas(const Need& need, const RunOptions& options,
                           const Deployment& deployment) {
  if (!need.replicated) return {};
  const StrategyOptions& wanted = options.workload.strategy;
  const std::string& url = deployment.endpoints.at(need.set()).front();
  const auto store = find_store_kind(need.backend->name)->make(url, wanted.command_timeout);
  const auto facts = store->facts();
  const int least = wanted.wait_replicas.value_or(1);
  if (!facts && !wanted.wait_replicas) {
    return fmt::format("how many replicas there are is not known ({}): --wait-replicas says it",
                       facts.error().message);
  }
  if (!facts || facts->replicas >= least) return {};
  return fmt::format("{} has {} replica{}, and {} must acknowledge", store->display(),
                     facts->replicas, facts->replicas == 1 ? "" : "s", least);
}

}  // namespace

std::uint64_t open_files_for(const loadgen::Workload& workload, int files, bool lines) {
  // Those that clients share, for renewal and notification, are few.
  constexpr std::uint64_t kBesides = 256;
  auto each = static_cast<std::uint64_t>(files);
  // And both ends of each connection in the proxy.
  if (lines || workload.rtt > Duration::zero()) each *= 3;
  // One to a counter that does not live in this process.
  if (workload.resource != loadgen::Resource::memory) ++each;
  return static_cast<std::uint64_t>(workload.clients) * each + kBesides;
}

tl::expected<void, std::string> can_serve(std::string_view backend) {
  const Backend* const known = find_backend(backend);
  if (known == nullptr) return {};
  const auto program = known->find_program();
  if (!program) return tl::unexpected(program.error());
  return {};
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
  // A user who may lock need not be allowed to ask for facts.
  const auto facts = store->facts();
  return results::Server{facts ? facts->version : std::string(kUnknownVersion), {store->display()}};
}

tl::expected<Deployment, UsageError> deploy(const RunOptions& options,
                                            std::vector<Selected>& selected,
                                            std::vector<results::Skipped>& skipped,
                                            const std::stop_token& stop) {
  if (auto done = skip_unable(options, selected, skipped); !done) {
    return tl::unexpected(done.error());
  }
  Deployment deployment;
  Starter starter(options, deployment);
  // Last, so that it goes first: whatever is still starting is waited for.
  std::vector<Need> wanted = needs_of(options, selected);
  if (auto fits = check_faults(options, wanted); !fits) return tl::unexpected(fits.error());
  if (!wanted.empty()) {
    const bool lines =
        std::any_of(wanted.begin(), wanted.end(), [](const Need& need) { return need.lines; });
    const auto raised = testbed::raise_open_file_limit(
        open_files_for(options.workload, most_files(options, wanted), lines));
    if (!raised) {
      return tl::unexpected(UsageError{fmt::format("--clients: {}", raised.error())});
    }
  }
  for (Need& need : wanted) {
    if (auto distinct = check_distinct(need); !distinct) return tl::unexpected(distinct.error());
  }
  for (Need& need : wanted) {
    if (!need.given.empty()) continue;
    if (need.replicated) {
      need.begun_group = starter.begin_group();
      continue;
    }
    if (need.cluster) {
      need.begun_cluster = starter.begin_cluster(*need.backend);
      continue;
    }
    const int servers = need.quorum ? options.workload.nodes : 1;
    for (int i = 0; i < servers; ++i) need.begun.push_back(starter.begin(*need.backend));
  }
  for (Need& need : wanted) {
    auto provided = provide(need, starter, options, deployment, stop);
    if (provided) {
      const std::string lack = lacks_replicas(need, options, deployment);
      if (lack.empty()) continue;
      const auto concerns = [&](const Descriptor& strategy) {
        return strategy.traits.needs_replicas && need.concerns(strategy);
      };
      if (auto done = skip(concerns, lack, selected, skipped); !done) {
        return tl::unexpected(done.error());
      }
      continue;
    }
    if (need.counter) {
      return tl::unexpected(UsageError{
          fmt::format("{}: {}", options.counter_redis ? "--counter-redis" : "the counter's server",
                      provided.error())});
    }
    // Whoever names a server wants that server, not a comparison without it.
    if (!need.given.empty()) {
      return tl::unexpected(
          UsageError{fmt::format("{}: {}", need.backend->option, provided.error())});
    }
    const auto concerns = [&](const Descriptor& strategy) { return need.concerns(strategy); };
    auto done = skip(concerns, provided.error(), selected, skipped);
    if (!done) return tl::unexpected(done.error());
  }
  return deployment;
}

}  // namespace lockbench::cli

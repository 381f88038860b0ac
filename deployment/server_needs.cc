#include "deployment/server_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "deployment/fault_fit.h"
#include "strategies/store.h"

namespace lockbench::cli {
namespace {

bool needs(const std::vector<Selected>& selected, std::string_view backend, bool replicas) {
  return std::any_of(selected.begin(), selected.end(), [&](const Selected& one) {
    return one.strategy->backend == backend && one.strategy->traits.needs_replicas == replicas;
  });
}

bool needs_quorum(const std::vector<Selected>& selected, std::string_view backend) {
  return std::any_of(selected.begin(), selected.end(), [&](const Selected& one) {
    return one.strategy->backend == backend && one.strategy->traits.nodes > 1;
  });
}

bool needs_one(const std::vector<Selected>& selected, std::string_view backend) {
  return std::any_of(selected.begin(), selected.end(), [&](const Selected& one) {
    return one.strategy->backend == backend && one.strategy->traits.nodes <= 1;
  });
}

std::vector<std::string> first_of(std::vector<std::string> urls) {
  if (urls.size() > 1) urls.resize(1);
  return urls;
}

void add_needs_of(const Backend& backend, const RunOptions& options,
                  const std::vector<Selected>& selected, std::vector<Need>& all) {
  const bool plain = needs(selected, backend.name, false);
  const bool replicated = needs(selected, backend.name, true);
  const bool lines = options.workload.rtt > Duration::zero() || strikes_lines(options);
  // Whoever takes a primary's place is found by a line that leads there.
  const bool replaced = backend.name == "redis" && fails_over(options);
  if (replaced && (plain || replicated)) {
    all.push_back({.backend = &backend,
                   .replicated = true,
                   .lines = true,
                   .for_all = true,
                   .given = first_of(options.servers_of(backend.name))});
    return;
  }
  if (plain) {
    all.push_back({.backend = &backend,
                   .quorum = needs_quorum(selected, backend.name),
                   .first_only = needs_one(selected, backend.name),
                   .cluster = needs_cluster(options, backend.name),
                   .lines = lines,
                   .given = options.servers_of(backend.name)});
  }
  if (replicated) {
    all.push_back({.backend = &backend,
                   .replicated = true,
                   .lines = lines,
                   .given = first_of(options.servers_of(backend.name))});
  }
}

}  // namespace

std::vector<Need> needs_of(const RunOptions& options, const std::vector<Selected>& selected) {
  std::vector<Need> all;
  for (const Backend& backend : backends()) add_needs_of(backend, options, selected, all);
  if (options.workload.resource == loadgen::Resource::memory) return all;
  // The counter lives apart from the locks, so that its traffic does not slow them, unless the
  // user's one Redis is all there is.
  Need counter{.backend = find_backend("redis"), .counter = true, .given = {}};
  if (options.counter_redis) {
    counter.given = {*options.counter_redis};
  } else if (const auto redis = options.servers_of("redis"); !redis.empty()) {
    counter.given = {redis.front()};
  }
  all.push_back(std::move(counter));
  return all;
}

tl::expected<void, UsageError> check_distinct(const Need& need) {
  if (!need.quorum) return {};
  const StoreKind* const kind = find_store_kind(need.backend->name);
  std::set<std::string> seen;
  for (const std::string& url : need.given) {
    if (!kind->display(url)) continue;  // refused elsewhere
    // As a server calls itself: without the database, which does not make it another.
    const std::string shown = kind->make(url, {})->display();
    if (!seen.insert(shown).second) {
      return tl::unexpected(
          UsageError{fmt::format("{}: {} is given twice: a quorum needs independent servers",
                                 need.backend->option, shown)});
    }
  }
  return {};
}

int most_files(const RunOptions& options, const std::vector<Need>& wanted) {
  // ZooKeeper's library keeps a pipe besides.
  constexpr int kZooKeeper = 3;
  int most = 1;
  for (const Need& need : wanted) {
    if (need.backend->name == "zookeeper") most = std::max(most, kZooKeeper);
    if (!need.quorum) continue;
    most = std::max(
        most, need.given.empty() ? options.workload.nodes : static_cast<int>(need.given.size()));
  }
  return most;
}

}  // namespace lockbench::cli

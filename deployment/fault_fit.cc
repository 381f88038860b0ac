#include "deployment/fault_fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "deployment/backends.h"

namespace lockbench::cli {
namespace {

bool has(const RunOptions& options, std::initializer_list<loadgen::FaultKind> kinds) {
  return std::any_of(options.faults.begin(), options.faults.end(),
                     [&](const loadgen::Fault& fault) {
                       return std::find(kinds.begin(), kinds.end(), fault.kind) != kinds.end();
                     });
}

std::string unfit_for_nodes(const loadgen::Fault& fault, int nodes) {
  if (nodes <= 1) {
    return fmt::format("it lives on one server, and {} strikes one of several",
                       to_string(fault.kind));
  }
  if (fault.nodes > nodes) {
    return fmt::format("{} strikes more than its {} nodes", fault.to_string(), nodes);
  }
  return {};
}

}  // namespace

bool fails_over(const RunOptions& options) { return has(options, {loadgen::FaultKind::failover}); }

bool strikes_lines(const RunOptions& options) {
  return has(options, {loadgen::FaultKind::partition, loadgen::FaultKind::delay});
}

bool needs_cluster(const RunOptions& options, std::string_view backend) {
  const Backend* const known = find_backend(backend);
  return known != nullptr && known->start_cluster != nullptr &&
         has(options, {loadgen::FaultKind::failover, loadgen::FaultKind::node_kill,
                       loadgen::FaultKind::node_freeze});
}

std::string unfit(const loadgen::Fault& fault, const Descriptor& strategy,
                  const RunOptions& options) {
  const Backend* const backend = find_backend(strategy.backend);
  if (backend == nullptr) {
    return fmt::format("it has no server that {} could strike", fault.to_string());
  }
  const bool quorum = strategy.traits.nodes > 1;
  switch (fault.kind) {
    case loadgen::FaultKind::store_kill:
    case loadgen::FaultKind::store_freeze:
      if (!quorum) return {};
      return fmt::format(
          "it lives on several servers, and {} strikes a single one: {} is for those",
          to_string(fault.kind),
          to_string(fault.kind == loadgen::FaultKind::store_kill
                        ? loadgen::FaultKind::node_kill
                        : loadgen::FaultKind::node_freeze));
    case loadgen::FaultKind::node_kill:
    case loadgen::FaultKind::node_freeze: {
      const int members = backend->start_cluster != nullptr ? kClusterMembers : 1;
      return unfit_for_nodes(fault, quorum ? options.workload.nodes : members);
    }
    case loadgen::FaultKind::failover:
      if (quorum) return "its servers are independent: none of them takes another's place";
      if (backend->start_cluster != nullptr) return {};
      if (backend->name != "redis") {
        return fmt::format("no other server takes the place of a private {}", backend->name);
      }
      if (options.replicas < 1) return "failover needs a replica: --replicas 1 or more";
      return {};
    case loadgen::FaultKind::partition:
    case loadgen::FaultKind::delay:
      return {};
  }
  return {};
}

}  // namespace lockbench::cli

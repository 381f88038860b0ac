#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/runner.h"

namespace lockbench::loadgen {

/// The servers of the experiment, on which faults are injected. For one thread.
class QuorumNodes {
 public:
  virtual ~QuorumNodes() = default;
  /// Of the first `nodes.count` servers, through connections that can have these faults, and of one
  /// server with replicas.
  virtual Endpoints endpoints(const results::Nodes& nodes) = 0;
  /// Injects these faults into the last of the first `nodes.count` servers.
  virtual tl::expected<void, std::string> inject(const results::Nodes& nodes) = 0;
  /// Ends all faults; returns when all nodes answer again.
  virtual tl::expected<void, std::string> heal() = 0;
};

/// Measures the cost of a lock on a quorum, by the number of nodes and their faults, against a lock
/// on one node with and without replicas.
struct QuorumPlan {
  /// Of each point, in several rounds, so that a drift of the machine affects all points alike. The
  /// experiment sets strategy, servers, clients and keys.
  RunPlan run;
  std::vector<int> nodes;
  std::vector<std::string> others{};  ///< more strategies on a quorum
  int contending = 8;                 ///< clients that contend for one lock
  /// The nodes with this fault at the points that have one: for each number that a quorum has.
  /// Empty: the most that the quorum survives, and for `down` also one more.
  std::vector<int> down{}, frozen{}, slow{};
  Duration slow_by{};  ///< added to each answer of a slow node
  /// Called after each run with all runs so far; may be empty.
  std::function<void(const std::vector<results::Run>&)> so_far{};
};

struct QuorumPointPlan {
  std::string_view strategy;
  results::Nodes nodes;  ///< with their faults
  int clients = 1;

  std::string text() const;
};

/// In the order in which they are measured.
std::vector<QuorumPointPlan> points_of(const QuorumPlan& plan);

/// Adds a node's cost to the runs on healthy quorums, compared round by round with the smallest
/// quorum of the same strategy and number of clients.
void add_node_costs(std::vector<results::Run>& runs);

/// A stop ends the experiment early; these are then the results so far.
struct QuorumMeasured {
  std::vector<results::Run> runs;  ///< one for each point and round
  std::vector<std::string>
      errors;  ///< points that could not be measured, and failures of healthy ones
  std::vector<std::string> violated;  ///< points in which exclusion was broken
};
QuorumMeasured measure_quorum(const QuorumPlan& plan, QuorumNodes& nodes, const OnStep& on_step,
                              const std::stop_token& stop);

}  // namespace lockbench::loadgen

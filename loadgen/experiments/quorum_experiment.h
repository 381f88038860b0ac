#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/experiments/experiment.h"
#include "loadgen/record/histogram.h"
#include "loadgen/run/runner.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

/// How many nodes have which fault.
struct QuorumFault {
  int down = 0, frozen = 0, slow = 0;

  bool any() const { return down + frozen + slow > 0; }
};

/// The servers of the experiment, on which faults are injected. For one thread.
class QuorumNodes {
 public:
  virtual ~QuorumNodes() = default;
  /// Of the first `nodes` servers, through connections that can have this fault, and of one server
  /// with replicas.
  virtual Endpoints endpoints(int nodes, const QuorumFault& fault) = 0;
  /// Hits the last ones of the first `nodes`.
  virtual tl::expected<void, std::string> inject(int nodes, const QuorumFault& fault) = 0;
  /// Ends all faults; returns when all nodes answer again.
  virtual tl::expected<void, std::string> heal() = 0;
};

/// What a lock on a quorum costs, by the number of nodes and their faults, compared with a lock on
/// one node with and without replicas.
struct QuorumPlan {
  /// Of each point, in several rounds, so that a drift of the machine affects all points alike. The
  /// experiment sets strategy, servers, clients and keys.
  RunPlan run;
  std::vector<int> nodes;
  int contending = 8;  ///< clients that contend for one lock
  Duration slow{};     ///< added to each answer of a slow node
  /// Called after each run with the points so far; may be empty.
  std::function<void(std::vector<results::QuorumPoint>)> so_far{};
};

/// One configuration of strategy, nodes and clients.
struct QuorumPointPlan {
  std::string_view strategy;
  int nodes = 1;
  int clients = 1;
  QuorumFault fault{};

  std::string text() const;
};

/// In the order in which they are measured.
std::vector<QuorumPointPlan> points_of(const QuorumPlan& plan);

/// Merges all runs of one point, one for each round.
class QuorumPointSum {
 public:
  QuorumPointSum(const QuorumPointPlan& plan, Duration slow) : plan_(plan), slow_(slow) {}

  void add(const results::Run& run);
  /// For a round whose run could not start.
  void add_nothing() { p50s_.emplace_back(); }
  bool any() const { return seconds_ > 0; }
  results::QuorumPoint point() const;
  const QuorumPointPlan& plan() const { return plan_; }
  /// The acquire p50 of each round, in seconds; nothing where nothing was granted.
  const std::vector<std::optional<double>>& p50s() const { return p50s_; }

 private:
  QuorumPointPlan plan_;
  Duration slow_;
  double seconds_ = 0, commands_ = 0;
  std::uint64_t sections_ = 0, granted_ = 0, ended_ = 0, split_votes_ = 0;
  double rounds_ = 0;
  std::optional<bool> violated_;
  HistogramSnapshot acquire_, acquire_cut_, validity_;
  std::vector<std::optional<double>> p50s_;
};

/// The points of all sums that have runs. Those of healthy quorums say what a node costs, compared
/// round by round with the smallest quorum of the same strategy with as many clients.
std::vector<results::QuorumPoint> points_of(const std::vector<QuorumPointSum>& sums);

/// A stop ends it early, with what was measured until then.
struct QuorumMeasured {
  std::vector<results::QuorumPoint> points;
  std::vector<std::string>
      errors;  ///< points that could not be measured, and failures of healthy ones
  std::vector<std::string> violated;  ///< points in which exclusion was broken
  bool interrupted = false;
};
QuorumMeasured measure_quorum(const QuorumPlan& plan, QuorumNodes& nodes, const OnStep& on_step,
                              const std::stop_token& stop);

}  // namespace lockbench::loadgen

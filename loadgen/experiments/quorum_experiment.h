#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/record/histogram.h"
#include "loadgen/run/runner.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

/// What is the matter with some of the nodes.
struct QuorumFault {
  int down = 0, frozen = 0, slow = 0;

  bool any() const { return down + frozen + slow > 0; }
};

/// The servers that the experiment is made on, and what can be done to them. For one thread.
class QuorumNodes {
 public:
  virtual ~QuorumNodes() = default;
  /// The first `nodes` of them, by lines on which these faults can be, and one with replicas.
  virtual Endpoints endpoints(int nodes, const QuorumFault& fault) = 0;
  /// To the last ones of `nodes`.
  virtual tl::expected<void, std::string> inject(int nodes, const QuorumFault& fault) = 0;
  /// Ends all faults; returns when all nodes answer again.
  virtual tl::expected<void, std::string> heal() = 0;
};

/// What a lock on a quorum of nodes costs, by their number and by what is the matter with them,
/// against a lock on one node, with replicas and without.
struct QuorumPlan {
  std::string run_id;
  std::vector<int> nodes;
  int contending = 8;  ///< clients at one lock, where they contend
  Duration slow{};     ///< what slow nodes take longer
  /// Each point's: in two halves, so that a drift of the machine touches all points alike. Clients
  /// and keys are the experiment's.
  Workload workload;
};

/// One constellation.
struct QuorumPointPlan {
  std::string_view strategy;
  int nodes = 1;
  int clients = 1;
  QuorumFault fault{};

  std::string text() const;
};

/// In the order in which they are measured.
std::vector<QuorumPointPlan> points_of(const QuorumPlan& plan);

/// All runs of one point, put together.
class QuorumPointSum {
 public:
  QuorumPointSum(const QuorumPointPlan& plan, Duration slow) : plan_(plan), slow_(slow) {}

  void add(const results::Run& run);
  bool any() const { return seconds_ > 0; }
  results::QuorumPoint point() const;

 private:
  QuorumPointPlan plan_;
  Duration slow_;
  double seconds_ = 0, commands_ = 0;
  std::uint64_t sections_ = 0, granted_ = 0, ended_ = 0, split_votes_ = 0;
  double rounds_ = 0;
  std::optional<bool> violated_;
  HistogramSnapshot acquire_, validity_;
};

/// A stop ends it early, with what was measured until then.
struct QuorumMeasured {
  std::vector<results::QuorumPoint> points;
  std::vector<std::string>
      errors;  ///< points that could not be measured, and failures of healthy ones
  std::vector<std::string> violated;  ///< points in which exclusion was broken
  bool interrupted = false;
};
QuorumMeasured measure_quorum(const QuorumPlan& plan, QuorumNodes& nodes,
                              const std::function<void(const std::string& line)>& on_step,
                              const std::stop_token& stop);

}  // namespace lockbench::loadgen

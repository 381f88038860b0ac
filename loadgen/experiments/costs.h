#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/runner.h"

/// What a quorum costs, and what renewal costs.
namespace lockbench::loadgen {

/// A stop ends an experiment early; these are then the results so far.
struct CostsMeasured {
  std::vector<results::Run> runs;
  std::vector<std::string> errors;    ///< what could not be measured, and failures without a fault
  std::vector<std::string> violated;  ///< points of quorums in which exclusion was broken
};

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

CostsMeasured measure_quorum(const QuorumPlan& plan, QuorumNodes& nodes, const OnStep& on_step,
                             const std::stop_token& stop);

/// Measures the cost of renewal by the number of held locks: the throughput of other clients on the
/// same server, with and without the held and renewed locks, in alternating pairs of runs.
struct RenewalPlan {
  /// The load of the other clients, each on its own lock. The held locks have the same servers and
  /// TTL.
  RunPlan foreground;
  std::vector<std::uint64_t> held;
  int pairs = 1;
  /// Called after each pair with all runs so far; may be empty.
  std::function<void(const std::vector<results::Run>&)> so_far{};
};

/// The point between two renewals of a lock at which a pair of runs begins. Spread evenly over all
/// pairs, so that even a single lock is renewed as often as its period says.
constexpr double phase_of_pair(int pair, int pairs) { return (pair + 0.5) / pairs; }

/// Locks taken at equal intervals over one period. If taken together, they would be renewed
/// together, and a measurement would count one renewal of each too many or too few.
struct HeldLocksPlan {
  const Endpoints& endpoints;
  const StrategyOptions& options;
  std::string key_prefix;  ///< a number and a closing brace follow
  std::uint64_t count = 0;
  Duration ttl{};
  double phase = 0.5;  ///< from 0 to 1: of the interval between two locks; see phase_of_pair()

  /// From one renewal of a lock to the next.
  Duration period() const { return RenewalTiming{}.next(ttl); }
  /// When to take this lock, from the beginning of take().
  Duration taken_after(std::uint64_t number) const {
    const double share = (static_cast<double>(number) + phase) / static_cast<double>(count);
    return std::chrono::duration_cast<Duration>(period() * share);
  }
  std::string key(std::uint64_t number) const { return key_prefix + std::to_string(number) + "}"; }
};

/// Held locks are released in any case. A stop, or a failure, leaves out the pair under way and all
/// that would follow.
CostsMeasured measure_renewal(const RenewalPlan& plan, const OnStep& on_step,
                              const std::stop_token& stop);

}  // namespace lockbench::loadgen

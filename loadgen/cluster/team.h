#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/cluster/link.h"
#include "loadgen/cluster/part.h"
#include "loadgen/cluster/wire.h"
#include "strategies/registry.h"

namespace lockbench::loadgen::cluster {

/// Rank 0's knowledge of the ranks, and its settings for them apart from a run's plan.
struct Team {
  std::vector<Hello> hellos;                        ///< by rank
  std::function<std::string(int rank)> metrics_of;  ///< where it serves its own; may be empty
  std::string push;                                 ///< where all push theirs; empty: nowhere
  std::vector<bool> lost;  ///< ranks that are dead or silent; with one, no further run begins
  int tickets = 0;         ///< of orders so far

  bool is_complete() const { return std::find(lost.begin(), lost.end(), true) == lost.end(); }
  /// The number of ranks on the same host, itself included.
  int ranks_beside(int rank) const;
};

/// Makes a run with all ranks; this process is rank 0. A rank that cannot connect fails the run; a
/// rank that dies or falls silent later is left out of the result and named there.
tl::expected<results::Run, std::string> lead(Link& link, Team& team, const RunPlan& plan,
                                             const Descriptor& strategy, int repetition,
                                             const Progress& progress, ProgressObserver& observer,
                                             const std::stop_token& stop);

/// Runs this rank's clients for rank 0: says hello and follows its orders until it ends the runs,
/// the link's stop is requested, or rank 0 is silent for long. Blocks. Prints nothing. A stop ends
/// the run under way; its record is sent within half a second. Returns whether all ranks
/// leave together. `own`: this rank's addition to each plan. `watcher_of`: the watcher of a run;
/// may be empty.
bool serve(Link& link, const Hello& hello, const RunPlan& own,
           const std::function<RunWatcher*(const Order&)>& watcher_of = {});

/// The body of a message about the run of that order.
template <class T>
std::string about(int ticket, T value) {
  return to_bytes(std::pair(ticket, std::move(value)));
}

}  // namespace lockbench::loadgen::cluster

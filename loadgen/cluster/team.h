#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "loadgen/cluster/link.h"
#include "loadgen/cluster/part.h"
#include "loadgen/run/runner.h"

namespace lockbench::loadgen::cluster {

/// What rank 0 knows of the ranks, and what it tells them beside a run's plan.
struct Team {
  std::vector<Hello> hellos;  ///< by rank
  /// Where each rank keeps its part, with ".rank-N" behind it, and what its file says beside it.
  std::string part_path, heading;
  std::function<std::string(int rank)> metrics_of;  ///< where it serves its own; may be empty
  std::string push;                                 ///< where all push theirs; empty: nowhere
  std::vector<bool> lost;   ///< ranks that are dead or silent; there is no further run
  int tickets = 0;          ///< of orders so far
  bool kept_files = false;  ///< those of ranks are needed

  bool is_complete() const { return std::find(lost.begin(), lost.end(), true) == lost.end(); }
  /// How many are on the same host, itself included.
  int ranks_beside(int rank) const;
};

/// Makes a run of all ranks, of which this process is the first one. A rank that cannot connect
/// fails the run; one that dies or falls silent later is left out of its result and named there.
tl::expected<results::Run, std::string> lead(Link& link, Team& team, const RunPlan& plan,
                                             const Descriptor& strategy, int repetition,
                                             const Progress& progress, ProgressObserver& observer,
                                             const std::stop_token& stop);

}  // namespace lockbench::loadgen::cluster

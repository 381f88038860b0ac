#pragma once

#include <string>
#include <tl/expected.hpp>

#include "loadgen/run/runner.h"
#include "loadgen/run/share.h"

namespace lockbench::loadgen::cluster {

/// What every rank must know of a run. Has secrets, so it stays in memory.
struct Order {
  std::string run_id, strategy;
  int repetition = 1, number = 1;
  int ticket = 0;     ///< of this order among all, which every message about its run has
  Workload workload;  ///< of all ranks together
  Endpoints endpoints;
  std::string counter_url;
  std::string metrics;   ///< where the rank serves its own; empty: nowhere
  std::string push;      ///< likewise where it pushes them
  int ranks_beside = 1;  ///< on the same host, the rank itself included; they share its cores
  bool judges_machine = false;  ///< the rank says whether others took its host's CPU
  /// Where each rank keeps what it has recorded, with ".rank-N" behind it; empty: nowhere.
  std::string part_path;
  /// A result without runs, as JSON: what the file of a rank says beside its record.
  std::string heading;
};

/// The run as rank 0 plans it; `number` is that among all of its plans.
Order order_of(const RunPlan& plan, const Descriptor& strategy, int repetition, int number);

/// Of this order, which names the strategy.
RunPlan plan_of(const Order& order);

/// The workload of one rank: of limits on the number of sections its part, and of the host's cores
/// what the ranks beside it leave.
Workload part_of(const Workload& all, const Share& share, int ranks_beside);

}  // namespace lockbench::loadgen::cluster

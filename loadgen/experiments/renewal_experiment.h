#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/experiments/experiment.h"
#include "loadgen/run/runner.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

/// What renewal costs as a function of the number of held locks: throughput of other clients on the
/// same server, with the locks held and renewed and without, in alternating pairs of runs.
struct RenewalPlan {
  /// Of the other clients, each on its own lock. The held locks have the same servers and TTL.
  RunPlan foreground;
  std::vector<std::uint64_t> held;
  int pairs = 1;
  /// Called after each number of locks with all runs so far; may be empty.
  std::function<void(const std::vector<results::Run>&)> so_far{};
};

/// A stop ends it early, with the numbers of locks that are complete. Held locks are released in
/// any case.
struct RenewalMeasured {
  std::vector<results::Run> runs;  ///< of the other clients, each with the locks held meanwhile
  std::string error;               ///< why not all could be measured; empty if all were
  bool interrupted = false;
};
RenewalMeasured measure_renewal(const RenewalPlan& plan, const OnStep& on_step,
                                const std::stop_token& stop);

}  // namespace lockbench::loadgen

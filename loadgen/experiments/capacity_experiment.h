#pragma once

#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "loadgen/run/runner.h"
#include "results/file/model.h"
#include "results/stats/threshold.h"

namespace lockbench::loadgen {

/// How to measure the highest load at which one strategy keeps an objective.
struct CapacityPlan {
  /// Of each step; the search sets the strategy and the rate, and makes steps longer where the hold
  /// is long.
  RunPlan run;
  const Descriptor* strategy = nullptr;
  Duration time{};  ///< of the search
  std::vector<results::Threshold> objective;
  std::optional<double> planned_rate;
  /// Called after each run with what is known so far; may be empty.
  std::function<void(const results::Capacity&)> so_far{};
};

/// The time that a search takes if the user sets none: what eight rates near the capacity need for
/// so many samples as the objective takes, but 5 to 30 minutes.
Duration default_search_time(const Workload& workload,
                             std::span<const results::Threshold> objective);
/// With which a lock of such a hold cannot decide a single rate; empty if it can.
std::string search_too_short(const CapacityPlan& plan);

/// A stop ends it early, with what was measured until then.
struct CapacityMeasured {
  results::Capacity capacity;
  std::vector<std::string> errors;  ///< runs that did not start, and failures within runs
  bool interrupted = false;
};
CapacityMeasured measure_capacity(const CapacityPlan& plan, const OnStep& on_step,
                                  const std::stop_token& stop);

}  // namespace lockbench::loadgen

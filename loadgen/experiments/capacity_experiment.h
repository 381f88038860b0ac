#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "loadgen/experiments/extrapolation.h"
#include "loadgen/run/run_watcher.h"
#include "loadgen/run/runner.h"
#include "results/file/model.h"
#include "results/stats/threshold.h"

namespace lockbench::loadgen {

/// How to measure the highest load at which one strategy keeps an objective.
struct CapacityPlan {
  std::string run_id;
  const Descriptor* strategy = nullptr;
  /// Of each step; the search sets the rate.
  Workload workload;
  Endpoints endpoints;
  std::string counter_url;
  PrivateCpu private_cpu{};
  std::vector<results::Threshold> objective;
  std::vector<int> sweep_clients, sweep_keys;  ///< growing; none: no sweep
  Duration sweep_duration = std::chrono::seconds(1);
  std::optional<double> planned_rate;
  std::vector<Extrapolation> extrapolations;
  RunWatcher* watcher = nullptr;  ///< is notified of every run
};

/// A stop ends it early, with what was measured until then.
struct CapacityMeasured {
  results::Capacity capacity;
  std::vector<std::string> errors;  ///< runs that did not start, and failures within runs
  bool interrupted = false;
};
CapacityMeasured measure_capacity(const CapacityPlan& plan,
                                  const std::function<void(const std::string& line)>& on_step,
                                  const std::stop_token& stop);

/// The closed loops that the models are fitted to.
struct ModelBasis {
  const results::Run& contended;        ///< with all clients
  const results::Run* alone = nullptr;  ///< with one client; may be null
};

/// Fits the models and predicts with them: for the steps, for the largest swept number of clients,
/// which the fit leaves out, and for the extrapolations. `capacity` has the steps and the sweep.
std::vector<results::CapacityModel> model_capacity(const CapacityPlan& plan,
                                                   const results::Capacity& capacity,
                                                   const ModelBasis& basis);

}  // namespace lockbench::loadgen

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/load_options.h"
#include "loadgen/experiments/extrapolation.h"

namespace lockbench::cli {

struct CapacityOptions : LoadOptions {
  static constexpr Commands kCommand = kCapacity;
  std::vector<results::Threshold> objective;  ///< all must be kept; there is at least one
  std::optional<Duration> time;  ///< of the search of each strategy; nothing: chosen by the command
  bool sweep = true;
  std::vector<int> sweep_clients, sweep_keys;  ///< both empty: chosen by the command
  std::optional<double> planned_rate;
  std::vector<loadgen::Extrapolation> extrapolations;

  CapacityOptions() { workload.clients = 32; }
  void declare(OptionList& options);
};

}  // namespace lockbench::cli

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/load_options.h"

namespace lockbench::cli {

struct CapacityOptions : LoadOptions {
  static constexpr std::string_view kCommand = "capacity";
  std::vector<results::Threshold> objective;  ///< all must be kept; there is at least one
  std::optional<Duration> time;  ///< of the search of each strategy; nothing: chosen by the command
  std::optional<double> planned_rate;

  CapacityOptions() { workload.clients = 32; }
  void declare(OptionList& options);
};

}  // namespace lockbench::cli

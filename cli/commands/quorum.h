#pragma once

#include <vector>

#include "cli/options/load_options.h"

namespace lockbench::cli {

struct QuorumOptions : LoadOptions {
  static constexpr std::string_view kCommand = "quorum";
  std::vector<int> nodes;  ///< none: 1, 3, 5, 7
  Duration slow = std::chrono::milliseconds(20);

  QuorumOptions() { workload.duration = std::chrono::seconds(1); }
  void declare(OptionList& options);
};

}  // namespace lockbench::cli

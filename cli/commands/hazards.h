#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/load_options.h"
#include "hazards/player.h"
#include "results/file/model.h"

namespace lockbench::cli {

// The parts of `lockbench hazards`.

struct HazardOptions {
  static constexpr Commands kCommand = kHazards;
  std::vector<std::string> scenarios, strategies;  ///< names and globs as given; none: all
  std::string explain;                             ///< "SCENARIO/STRATEGY", or empty
  bool quick = false;
  bool tls = false;                                             ///< of the servers
  loadgen::ClientsOn clients_on = loadgen::ClientsOn::threads;  ///< in each client process
  std::optional<int> at_once;                                   ///< plays side by side
  int repeat = 1;                                               ///< plays of each cell
  bool dose = false;
  std::optional<int> dose_plays;    ///< of each point
  std::vector<double> dose_ratios;  ///< none: hazards::usual_ratios()
  OutputOptions output;

  void declare(OptionList& options);
  void complete(const OptionList& options) const;
};

/// Names and globs ("crash-*", "all"; none at all: all).
std::vector<const hazards::Scenario*> select_scenarios(const std::vector<std::string>& patterns,
                                                       bool quick);

/// The strategies of these names and globs that are part of this build. The others are skipped; one
/// that was named is an error.
std::vector<const Descriptor*> select_built(const std::vector<std::string>& patterns,
                                            std::vector<results::Skipped>& skipped);

/// hazards --dose
int play_doses(const HazardOptions& options);

}  // namespace lockbench::cli

#pragma once

#include <optional>
#include <string>

#include "cli/commands/commands.h"
#include "simulate/hunt.h"

namespace lockbench::cli {

/// The options of `simulate` that look for orders and faults which break a lock.
struct HuntOptions {
  bool hunt = false, shrink = false;
  double minutes = 5;  ///< for each strategy
  std::optional<simulate::Trial> replay;

  bool given() const { return hunt || replay; }
  void declare(OptionList& options);
  void complete(const OptionList& options) const;
};

/// Hunts or replays, and prints what was found. Returns the exit code. `trace_out` may be empty.
int hunt(const LoadOptions& load, const HuntOptions& options, int jobs,
         const std::string& trace_out);

}  // namespace lockbench::cli

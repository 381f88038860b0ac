#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "cli/options/select.h"

namespace lockbench::cli {
namespace {

int run(const RunOptions& options) { return measure(options, select_for_load(options)); }

}  // namespace

Command run_command() {
  return make_command<RunOptions>(
      {.task = kMeasure,
       .summary = "Measure and audit strategies under a load; show and save the result.",
       .example = "lockbench run 'redis-*' --clients 32 --hold 2ms --duration 10s",
       .over_ranks = true},
      run);
}

}  // namespace lockbench::cli

#include "cli/commands/run.h"

#include <chrono>

#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "cli/console/progress.h"
#include "cli/console/session.h"
#include "cli/options/select.h"

namespace lockbench::cli {

tl::expected<int, UsageError> measure(const RunOptions& options, std::vector<Selected> selected) {
  auto made = Measurement::make(options, std::move(selected));
  if (!made) return tl::unexpected(made.error());
  // Before the measurement, whose metrics and servers have threads.
  Session session(options.output.quiet);
  Console& console = session.console();
  const std::unique_ptr<Measurement> one = *std::move(made);
  const auto deployed = one->deploy(session);
  if (!deployed) return tl::unexpected(deployed.error());
  if (!*deployed) return session.interrupted_early();

  ProgressView progress(console, BootClock::now);
  const std::vector<loadgen::RunPlan> plans = one->plans();
  announce(plans, console);
  one->take(loadgen::run_plans(plans, progress, session.stop()), console);
  const int code = one->finish(true, console);
  one->linger(console, session.stop());
  return code;
}

namespace {

tl::expected<int, UsageError> run(const RunOptions& options) {
  auto selected = select_for_load(options);
  if (!selected) return tl::unexpected(selected.error());
  return measure(options, *std::move(selected));
}

}  // namespace

Command run_command() {
  return make_command<RunOptions>(
      {.name = "run",
       .task = kMeasure,
       .summary = "Measure and audit strategies under a load; show and save the result.",
       .example = "lockbench run 'redis-*' --clients 32 --hold 2ms --duration 10s",
       .over_ranks = true},
      run);
}

}  // namespace lockbench::cli

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/commands/commands.h"
#include "cli/commands/fault_servers.h"
#include "cli/commands/finish.h"
#include "cli/commands/hdr_files.h"
#include "cli/commands/metrics.h"
#include "cli/console/console.h"
#include "cli/console/progress.h"
#include "cli/console/publish.h"
#include "cli/console/session.h"
#include "cli/options/select.h"
#include "loadgen/run/runner.h"

namespace lockbench::cli {
namespace {

/// Everything that is known before the servers are started.
struct Plan {
  std::vector<Selected> selected;
  WallTime begun;
  results::Result result;
  std::string out;
};

tl::expected<Plan, UsageError> make_plan(const RunOptions& options) {
  auto selected = select_for_load(options);
  if (!selected) return tl::unexpected(selected.error());
  Plan plan{.selected = *std::move(selected), .begun = std::chrono::system_clock::now()};
  plan.result = begin_result(plan.begun);
  auto out = out_path(options.output, plan.result);
  if (!out) return tl::unexpected(out.error());
  plan.out = *std::move(out);
  if (!options.hdr.empty()) {
    if (auto writable = check_hdr_directory(options.hdr); !writable) {
      return tl::unexpected(UsageError{fmt::format("--hdr: {}", writable.error())});
    }
  }
  return plan;
}

loadgen::RunPlan load_of(const RunOptions& options, const Plan& plan,
                         const deployment::Deployment& servers) {
  loadgen::RunPlan load;
  load.run_id = plan.result.id;
  load.workload = options.workload;
  load.endpoints = servers.endpoints;
  load.counter_url = servers.counter_url;
  for (const Selected& one : plan.selected) load.strategies.push_back(one.strategy);
  return load;
}

/// Lists the strategies that an interrupted run did not come to as skipped.
void add_not_started(const std::vector<Selected>& selected, results::Result& result) {
  const auto has = [](const auto& list, std::string_view name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const auto& entry) { return entry.strategy == name; });
  };
  for (const auto& [strategy, named] : selected) {
    if (has(result.runs, strategy->name) || has(result.skipped, strategy->name)) continue;
    result.skipped.push_back({std::string(strategy->name), "interrupted"});
  }
}

void add_to_result(Plan& plan, const RunOptions& options, const deployment::Deployment& servers,
                   loadgen::RunReport report) {
  results::Result& result = plan.result;
  result.interrupted = report.interrupted;
  result.environment.servers = servers.facts;
  result.workload = workload_record(options);
  for (results::Skipped& run : report.not_started) {
    run.reason = "did not start: " + run.reason;
    result.skipped.push_back(std::move(run));
  }
  result.runs = std::move(report.runs);
  if (result.interrupted) add_not_started(plan.selected, result);
}

/// Saves and shows the result. Returns the exit code.
int finish_run(const RunOptions& options, const Plan& plan, bool no_errors, Console& console) {
  const results::Result& result = plan.result;
  const bool exported =
      options.hdr.empty() || save_hdr_files(result, plan.begun, options.hdr, console);
  const auto missed = missed_thresholds(options.thresholds, result.runs, plan.selected);
  Ending ending = ending_of(result);
  ending.strict = options.output.strict;
  ending.errors = ending.errors || !no_errors || !exported;
  ending.threshold_missed = !missed.empty();
  const int code = finish(result, render(result, options.output), plan.out, ending, console,
                          options.output.report);
  // After the table, so that they are the last lines.
  for (const std::string& line : missed) console.warn(line);
  return code;
}

tl::expected<int, UsageError> run(const RunOptions& options) {
  auto plan = make_plan(options);
  if (!plan) return tl::unexpected(plan.error());

  Session session(options.output.quiet);
  Console& console = session.console();
  auto metrics = Metrics::start(options, plan->selected, plan->result.id, console);
  if (!metrics) return tl::unexpected(metrics.error());
  const auto deployed = session.deploy(options, plan->selected, plan->result.skipped);
  if (!deployed) return tl::unexpected(deployed.error());
  if (!*deployed) return session.interrupted_early();
  const deployment::Deployment& servers = **deployed;

  ProgressView progress(console, std::chrono::steady_clock::now);
  loadgen::RunPlan load = load_of(options, *plan, servers);
  load.watcher = metrics->watcher();
  FaultServers faults(servers, options.workload.rtt);
  load.faults = options.faults;
  load.fault_target = &faults;
  loadgen::RunReport report = loadgen::run_plan(load, progress, session.stop());
  for (const results::Skipped& one : report.not_started) {
    console.warn(fmt::format("did not start: {}: {}", one.strategy, one.reason));
  }
  const bool no_errors = metrics->push(console) && report.not_started.empty() && !faults.failed();
  add_to_result(*plan, options, servers, std::move(report));
  const int code = finish_run(options, *plan, no_errors, console);
  metrics->linger(console, session.stop());
  return code;
}

}  // namespace

Command run_command() {
  return make_command<RunOptions>(
      {.name = "run",
       .task = kMeasure,
       .summary = "Measure and audit strategies under a load; show and save the result.",
       .example = "lockbench run 'redis-*' --clients 32 --hold 2ms --duration 10s"},
      run);
}

}  // namespace lockbench::cli

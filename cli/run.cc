#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/deployed_faults.h"
#include "cli/exit_code.h"
#include "cli/facts.h"
#include "cli/hdr_files.h"
#include "cli/metrics.h"
#include "cli/progress.h"
#include "cli/publish.h"
#include "cli/report_page.h"
#include "cli/select.h"
#include "cli/servers.h"
#include "cli/signals.h"
#include "loadgen/runner.h"
#include "results/save.h"
#include "strategies/registry.h"

namespace lockbench {
namespace {

/// What is settled before anything starts.
struct Plan {
  std::vector<Selected> selected;
  WallTime begun;
  std::string id, started_at, out;
};

tl::expected<Plan, UsageError> make_plan(const RunOptions& options) {
  Plan plan;
  std::vector<const Descriptor*> catalogue = all_strategies();
  const auto absent = absent_strategies();
  catalogue.insert(catalogue.end(), absent.begin(), absent.end());
  auto selected = select_strategies(options.strategies, catalogue);
  if (!selected) return tl::unexpected(selected.error());
  plan.selected = std::move(*selected);
  if (auto fits = check_waiting(plan.selected, options.workload.strategy.wait); !fits) {
    return tl::unexpected(fits.error());
  }
  if (auto fits =
          check_renewal(plan.selected, options.workload.strategy.renew, options.workload.ttl);
      !fits) {
    return tl::unexpected(fits.error());
  }
  const WallTime now = std::chrono::system_clock::now();
  plan.begun = now;
  plan.id = run_id(now, std::random_device()());
  plan.started_at = rfc3339(now);
  plan.out = options.out.empty() ? fmt::format("results/runs/{}.json", plan.id) : options.out;
  if (auto writable = results::check_writable(plan.out); !writable) {
    return tl::unexpected(UsageError{fmt::format("--out: {}", writable.error())});
  }
  if (auto fits = check_report(options, plan.out); !fits) return tl::unexpected(fits.error());
  if (!options.hdr.empty()) {
    if (auto writable = check_hdr_directory(options.hdr); !writable) {
      return tl::unexpected(UsageError{fmt::format("--hdr: {}", writable.error())});
    }
  }
  return plan;
}

RunPlan load_of(const RunOptions& options, const Plan& plan, const Deployment& deployment) {
  RunPlan load;
  load.run_id = plan.id;
  load.workload = options.workload;
  load.endpoints = deployment.endpoints;
  load.counter_url = deployment.counter_url;
  for (const Selected& one : plan.selected) load.strategies.push_back(one.strategy);
  return load;
}

/// A strategy that a stop left out is not to be missing without a word.
void add_never_begun(const std::vector<Selected>& selected, results::Result& result) {
  const auto has = [](const auto& list, std::string_view name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const auto& entry) { return entry.strategy == name; });
  };
  for (const auto& [strategy, named] : selected) {
    if (has(result.runs, strategy->name) || has(result.skipped, strategy->name)) continue;
    result.skipped.push_back({std::string(strategy->name), "interrupted"});
  }
}

results::Result result_of(const RunOptions& options, const Plan& plan, const Deployment& deployment,
                          std::vector<results::Skipped> skipped, RunReport report) {
  results::Result result;
  result.id = plan.id;
  result.started_at = plan.started_at;
  result.interrupted = report.interrupted;
  result.lockbench = build_facts();
  result.environment = machine_facts();
  result.environment.servers = deployment.facts;
  result.workload = workload_record(options);
  result.skipped = std::move(skipped);
  for (results::Skipped& run : report.not_started) {
    run.reason = "did not start: " + run.reason;
    result.skipped.push_back(std::move(run));
  }
  result.runs = std::move(report.runs);
  if (result.interrupted) add_never_begun(plan.selected, result);
  return result;
}

/// Saves and shows the result, and decides how this ends.
int finish(const RunOptions& options, const Plan& plan, const results::Result& result,
           bool all_well, Console& console) {
  Ending ending = ending_of(result);
  ending.strict = options.strict;
  ending.errors = ending.errors || !all_well;
  console.status("");
  const bool saved = save_result(result, plan.out, console);
  const bool exported =
      options.hdr.empty() || save_hdr_files(result, plan.begun, options.hdr, console);
  const bool reported = save_report(result, options.report.page, plan.out, console);
  results::TableOptions look;
  look.color = may_color(stdout);
  if (is_terminal(stdout)) look.width = static_cast<std::size_t>(terminal_width(stdout));
  const bool printed = print_text(render(result, options.format, look), console);
  ending.errors = ending.errors || !saved || !exported || !reported || !printed;
  for (const std::string& line :
       missed_thresholds(options.thresholds, result.runs, plan.selected)) {
    console.warn(line);
    ending.threshold_missed = true;
  }
  return exit_code_of(ending);
}

tl::expected<int, UsageError> run(const RunOptions& options) {
  auto plan = make_plan(options);
  if (!plan) return tl::unexpected(plan.error());

  prepare_signals();
  Console console(stderr, is_terminal(stderr), options.quiet);
  const std::stop_source stop;
  const StopOnSignal on_signal(stop, console);
  auto metrics = Metrics::start(options, plan->selected, plan->id, console);
  if (!metrics) return tl::unexpected(metrics.error());
  std::vector<results::Skipped> skipped;
  const auto deployment = deploy(options, plan->selected, skipped, stop.get_token());
  if (stop.stop_requested()) {
    console.warn("interrupted before the load began: nothing was measured");
    return exit_code::kInterrupted;
  }
  if (!deployment) return tl::unexpected(deployment.error());

  const results::Build build = build_facts();
  if (!figures_can_be_trusted(build)) {
    console.warn(fmt::format("warning: this is a {} build: its figures are not to be trusted",
                             build.build_type.empty() ? "non-optimised" : build.build_type));
  }
  for (const std::string& line : deployment->warnings) console.warn("warning: " + line);
  for (const results::Skipped& one : skipped) {
    console.note(fmt::format("skipped: {}: {}", one.strategy, one.reason));
  }
  ProgressView progress(console, std::chrono::steady_clock::now);
  RunPlan load = load_of(options, *plan, *deployment);
  load.watcher = metrics->watcher();
  DeployedFaults faults(options, *deployment);
  load.faults = options.faults;
  load.fault_ground = &faults;
  RunReport report = run_plan(load, progress, stop.get_token());
  for (const results::Skipped& one : report.not_started) {
    console.warn(fmt::format("did not start: {}: {}", one.strategy, one.reason));
  }
  // All are errors at run time.
  const bool all_well = metrics->push(console) && report.not_started.empty() && !faults.failed();
  const results::Result result =
      result_of(options, *plan, *deployment, std::move(skipped), std::move(report));
  const int code = finish(options, *plan, result, all_well, console);
  metrics->linger(console, stop.get_token());
  return code;
}

}  // namespace

Command run_command() {
  return {
      .name = "run",
      .summary = "Puts every chosen strategy under load, audits it, shows and saves the result.",
      .options = run_options(),
      .loads = true,
      .execute = run};
}

}  // namespace lockbench

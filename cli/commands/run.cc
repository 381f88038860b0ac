#include "cli/commands/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "cli/commands/commands.h"
#include "cli/commands/fault_servers.h"
#include "cli/commands/finish.h"
#include "cli/commands/hdr_files.h"
#include "cli/commands/metrics.h"
#include "cli/commands/private_cpu.h"
#include "cli/console/console.h"
#include "cli/console/progress.h"
#include "cli/console/publish.h"
#include "cli/console/session.h"
#include "cli/options/select.h"
#include "loadgen/run/named_load.h"
#include "loadgen/run/runner.h"
#include "results/file/json.h"
#include "results/file/load.h"
#include "results/file/save.h"
#include "results/stats/comparison.h"
#include "results/tables/units.h"

namespace lockbench::cli {
namespace {

/// Everything that is known before the servers are started. The result has the runs of a file that
/// is resumed.
struct Plan {
  std::vector<Selected> selected;
  WallTime begun;
  results::Result result;
  std::string out;
};

/// Each run says what its clients did.
OptionRecord workload_of(const RunOptions& options) {
  OptionRecord workload = workload_record(options);
  if (options.points().size() <= 1) return workload;
  const auto forget = [&](bool decided, const std::string& option) {
    if (!decided) workload[option] = nullptr;
  };
  forget(options.decided.clients, "clients");
  forget(options.decided.hold, "hold");
  forget(options.decided.rate, "rate");
  forget(options.decided.rtt, "rtt");
  return workload;
}

/// The runs that the file of --out has; none if there is no such file yet.
tl::expected<std::vector<results::Run>, std::string> runs_made(const RunOptions& options,
                                                               const results::Result& begun) {
  const std::string& file = options.output.out;
  if (!std::filesystem::exists(file)) return {};
  auto saved = results::load(file);
  if (!saved) return tl::unexpected(saved.error());
  auto differences = results::incompatibilities(*saved, begun);
  if (saved->lockbench.commit != begun.lockbench.commit) {
    differences.push_back(
        fmt::format("commit {} and {}", saved->lockbench.commit, begun.lockbench.commit));
  }
  if (!differences.empty()) {
    return tl::unexpected(fmt::format("{} was measured otherwise: {}", file, differences.front()));
  }
  // The run that a stop cut short.
  if (saved->interrupted && !saved->runs.empty() &&
      saved->runs.back().duration_seconds < seconds(options.workload.duration)) {
    saved->runs.pop_back();
  }
  return std::move(saved->runs);
}

tl::expected<Plan, UsageError> make_plan(const RunOptions& options,
                                         std::vector<Selected> selected) {
  Plan plan{.selected = std::move(selected), .begun = std::chrono::system_clock::now()};
  plan.result = begin_result(plan.begun);
  plan.result.workload = workload_of(options);
  auto out = out_path(options.output, plan.result);
  if (!out) return tl::unexpected(out.error());
  plan.out = *std::move(out);
  if (options.output.resume) {
    if (options.output.out.empty() || plan.out == kStdout) {
      return tl::unexpected(UsageError{"--resume needs --out FILE"});
    }
    auto made = runs_made(options, plan.result);
    if (!made) return tl::unexpected(UsageError{"--resume: " + made.error()});
    plan.result.runs = *std::move(made);
  }
  if (!options.hdr.empty()) {
    if (auto writable = check_hdr_directory(options.hdr); !writable) {
      return tl::unexpected(UsageError{fmt::format("--hdr: {}", writable.error())});
    }
  }
  return plan;
}

/// One plan for each workload.
std::vector<loadgen::RunPlan> plans_of(const RunOptions& options, const Plan& plan,
                                       const deployment::Deployment& servers) {
  std::vector<loadgen::RunPlan> plans;
  for (const loadgen::Workload& point : options.points()) {
    const bool far = point.rtt != options.workload.rtt;
    loadgen::RunPlan load;
    load.run_id = plan.result.id;
    load.workload = point;
    // Nothing is contended: a steady cost is measured soon.
    if (point.settles_after && point.load == to_string(loadgen::NamedLoad::alone)) {
      load.workload.duration = std::min(point.duration, *point.settles_after);
    }
    load.is_done = [&plan, made = loadgen::load_of(point)](const Descriptor& strategy,
                                                           int repetition) {
      return std::any_of(plan.result.runs.begin(), plan.result.runs.end(),
                         [&](const results::Run& run) {
                           return run.strategy == strategy.name && run.repetition == repetition &&
                                  run.load == made;
                         });
    };
    load.endpoints = far ? servers.far_endpoints : servers.endpoints;
    load.counter_url = servers.counter_url;
    load.private_cpu = private_cpu_of(servers);
    load.warms_up = [&servers](const Descriptor& strategy) { return servers.warms_up(strategy); };
    for (const Selected& one : plan.selected) {
      // A lock without a server has no network, and the user's servers have one of their own.
      if (far && urls_of(*one.strategy, load.endpoints).empty()) continue;
      load.strategies.push_back(one.strategy);
    }
    if (point.rtt > Duration::zero()) {
      load.bytes_moved = [&servers] { return servers.bytes_moved(); };
    }
    plans.push_back(std::move(load));
  }
  return plans;
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

void add_to_result(loadgen::RunReport report, Plan& plan) {
  results::Result& result = plan.result;
  result.interrupted = report.interrupted;
  for (results::Skipped& run : report.not_started) {
    run.reason = "did not start: " + run.reason;
    result.skipped.push_back(std::move(run));
  }
  if (result.interrupted) add_not_started(plan.selected, result);
}

/// Saves and shows the result. Returns the exit code.
int finish_run(const RunOptions& options, const Plan& plan, bool no_errors, Console& console) {
  const results::Result& result = plan.result;
  const bool exported =
      options.hdr.empty() || save_hdr_files(result, plan.begun, options.hdr, console);
  const auto missed = missed_thresholds(options.thresholds, result, plan.selected);
  Ending ending = ending_of(result);
  ending.strict = options.output.strict;
  ending.errors = ending.errors || !no_errors || !exported;
  ending.nothing_granted = ending.nothing_granted && !options.allow_no_grants;
  ending.threshold_missed = !missed.empty();
  const int code = finish(result, render(result, options.output), plan.out, ending, console,
                          options.output.report);
  // After the table, so that they are the last lines.
  for (const std::string& line : missed) console.warn(line);
  return code;
}

/// Says how long it takes, unless that is short.
void announce(const std::vector<loadgen::RunPlan>& plans, Console& console) {
  constexpr Duration kShort = std::chrono::seconds(20);
  // Connecting, draining and removing keys.
  constexpr Duration kBesides = std::chrono::milliseconds(300);
  Duration all{};
  for (const loadgen::RunPlan& plan : plans) {
    const loadgen::Workload& load = plan.workload;
    int runs = 0;
    for (const Descriptor* strategy : plan.strategies) {
      for (int repetition = 1; repetition <= load.repeat; ++repetition) {
        if (!plan.is_done(*strategy, repetition)) ++runs;
      }
    }
    all += runs * (load.warmup + load.duration + kBesides);
  }
  if (all > kShort) {
    console.note(fmt::format("this takes up to {}", results::human_seconds(seconds(all))));
  }
}

}  // namespace

tl::expected<int, UsageError> measure(const RunOptions& options, std::vector<Selected> selected) {
  auto plan = make_plan(options, std::move(selected));
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
  FaultServers faults(servers, options.workload.rtt);
  std::vector<loadgen::RunPlan> plans = plans_of(options, *plan, servers);
  plan->result.environment.servers = servers.facts;
  plan->result.interrupted = true;  // until it is over
  const auto run_over = [&](const results::Run& run) {
    plan->result.runs.push_back(run);
    if (plan->out == kStdout) return;
    // What goes wrong here goes wrong at the end as well, and is said there.
    static_cast<void>(results::replace(plan->out, results::to_json(plan->result)));
  };
  for (loadgen::RunPlan& load : plans) {
    load.watcher = metrics->watcher();
    load.faults = options.faults;
    load.fault_target = &faults;
    load.run_over = run_over;
  }
  announce(plans, console);
  loadgen::RunReport report = loadgen::run_plans(plans, progress, session.stop());
  for (const results::Skipped& one : report.not_started) {
    console.warn(fmt::format("did not start: {}: {}", one.strategy, one.reason));
  }
  const bool no_errors = metrics->push(console) && report.not_started.empty() && !faults.failed();
  add_to_result(std::move(report), *plan);
  const int code = finish_run(options, *plan, no_errors, console);
  metrics->linger(console, session.stop());
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
       .example = "lockbench run 'redis-*' --clients 32 --hold 2ms --duration 10s"},
      run);
}

}  // namespace lockbench::cli

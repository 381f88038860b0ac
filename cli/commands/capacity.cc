#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "cli/console/ranks.h"
#include "cli/console/session.h"
#include "loadgen/experiments/capacity_experiment.h"
#include "results/stats/figures.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

/// The search raises the rate until the objective is missed, so the objective must be one that a
/// higher rate makes harder to keep.
tl::expected<results::Threshold, std::string> parse_objective(const std::string& text) {
  using enum results::Comparison;
  using results::Good;
  auto objective = results::parse_threshold(text);
  if (!objective) return objective;
  const Good good = results::compared_figure(objective->figure).good;
  const bool below = objective->comparison == less || objective->comparison == less_equal;
  const bool above = objective->comparison == greater || objective->comparison == greater_equal;
  if ((good == Good::lower && above) || (good == Good::higher && below)) {
    return tl::unexpected(fmt::format("\"{}\": this objective improves as {} gets worse; use {}",
                                      text, objective->figure, below ? ">" : "<"));
  }
  return objective;
}

/// One strategy after the other. Those that a stop left out are listed as skipped.
void measure_all(loadgen::CapacityPlan plan, const std::vector<Selected>& selected,
                 results::Result& result, ResultFile& file, Ending& ending, Session& session) {
  Console& console = session.console();
  auto& capacities = *result.capacity;
  result.interrupted = true;  // until it is over
  plan.so_far = [&](const results::Capacity& capacity) {
    capacities.push_back(capacity);
    file.keep(result);
    capacities.pop_back();
  };
  if (const std::string why = loadgen::search_too_short(plan); !why.empty()) console.warn(why);
  for (const Selected& one : selected) {
    const std::string name(one.strategy->name);
    if (session.stopped()) {
      result.skipped.push_back({name, "interrupted"});
      continue;
    }
    plan.strategy = one.strategy;
    loadgen::CapacityMeasured measured = loadgen::measure_capacity(
        plan, [&](const std::string& line) { console.note(line); }, session.stop());
    for (const std::string& line : measured.errors) console.warn("failure: " + line);
    const results::Capacity& capacity = measured.capacity;
    // A control promises no exclusion.
    const bool violated =
        one.strategy->traits.promises_exclusion && capacity.violated.value_or(false);
    if (violated) console.warn("exclusion was broken: " + name);
    ending.errors |= !measured.errors.empty();
    ending.exclusion_broken |= violated;
    ending.invalid |= capacity.limit == "generator";
    const bool not_shown = capacity.planned_rate && *capacity.planned_rate > capacity.lowest;
    ending.threshold_missed |= not_shown || capacity.lowest <= 0;
    ending.planned_too_high |= capacity.planned_too_high();
    capacities.push_back(std::move(measured.capacity));
    file.keep(result);
  }
  result.interrupted = ending.interrupted = session.stopped();
  file.keep(result);
}

int capacity(const CapacityOptions& given) {
  if (given.strategies.empty()) {
    throw UsageError("capacity needs a strategy: lockbench capacity redis-queue --slo EXPR");
  }
  if (given.objective.empty()) {
    throw UsageError("capacity needs an objective: --slo 'acquire.p99<20ms'");
  }
  CapacityOptions options = given;
  if (!given.time) options.time = loadgen::default_search_time(given.workload, given.objective);
  std::vector<Selected> selected = select_for_load(options);
  results::Result result = begin_result(options.output);
  result.capacity.emplace();
  const std::string out = out_path(options.output, result);

  Session session(options.output);
  Metrics metrics = Metrics::start(options, selected, result.id, session.console());
  const auto deployment = session.deploy(options, selected, result.skipped);
  if (!deployment) return session.interrupted_early();

  Ending ending{.strict = options.output.strict};
  result.environment.servers = deployment->facts;
  result.workload = workload_record(options);
  ResultFile file(out, session.console());
  loadgen::CapacityPlan plan{.run = plan_on(*deployment, result.id),
                             .time = *options.time,
                             .objective = options.objective,
                             .planned_rate = options.planned_rate};
  plan.run.workload = options.workload;
  plan.run.watcher = metrics.watcher();
  plan.run.maker = maker_of(out, result, options.metrics);
  measure_all(std::move(plan), selected, result, file, ending, session);
  ending.errors |= !metrics.push(session.console());
  const int code = finish(result, options.output, file, ending);
  metrics.linger(session.console(), session.stop());
  return code;
}

}  // namespace

void CapacityOptions::declare(OptionList& options) {
  options.add("slo", "EXPR", objective, parsed(parse_objective, &results::Threshold::text),
              "objective to keep, such as 'acquire.p99<20ms'; several must all be kept");
  options.add("clients", "N", workload.clients, whole_number(1, 10'000),
              "concurrent clients; enough that some are always free to start a section");
  options.add("duration", "D", workload.duration, duration(10ms, 1h),
              "measured time of each step of the search; longer for a long hold or a low rate");
  options.add("time", "D", time, duration(1s, 168h), "how long to search the rates of a strategy",
              "5m, for a long hold up to 30m");
  options.add(
      "planned-rate", "R", planned_rate, number(0.001, 10'000'000),
      "planned sections per second: measured if it may be the limit, shows headroom; exit 99 "
      "unless it is kept",
      "none");
  options.without({"load", "think", "rate", "arrival", "iterations", "shared-share", "repeat",
                   "contended-grants", "hot-set", "trace", "locks-per-section", "lock-order",
                   "deadlock-timeout", "renew-cap", "fault"},
                  [&] { LoadOptions::declare(options); });
  options.at("strategies").default_text = "";  // required
  metrics.declare(options);
  options.without({"resume"}, [&] { output.declare(options); });
}

Command capacity_command() {
  return make_command<CapacityOptions>(
      {.task = kMeasure,
       .summary = "Find the highest load that keeps an objective, and what limits it.",
       .example = "lockbench capacity redis-queue --slo 'acquire.p99<20ms' --clients 64",
       .over_ranks = true},
      capacity);
}

}  // namespace lockbench::cli

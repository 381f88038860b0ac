#include "cli/commands/capacity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/commands/commands.h"
#include "cli/commands/finish.h"
#include "cli/commands/metrics.h"
#include "cli/commands/run_plan.h"
#include "cli/console/ranks.h"
#include "cli/console/session.h"
#include "cli/options/value_types.h"
#include "loadgen/experiments/capacity_experiment.h"
#include "results/stats/compared_figures.h"
#include "results/tables/text.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

/// 1, 2, 4, ... and the last one itself.
std::vector<int> doubling_up_to(int last) {
  std::vector<int> numbers;
  for (int number = 1; number < last; number *= 2) numbers.push_back(number);
  numbers.push_back(last);
  return numbers;
}

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

/// "4,1,2" as 1, 2, 4. `text` is what the user wrote.
tl::expected<std::vector<int>, std::string> parse_points(const std::string& text,
                                                         std::string_view list) {
  constexpr std::size_t kMaxPoints = 16;
  std::set<int> points;
  for (const std::string& word : results::split_at_commas(list)) {
    const auto point = whole_number(1, 10'000).parse(word);
    if (!point) return tl::unexpected(fmt::format("\"{}\": {}", text, point.error()));
    points.insert(static_cast<int>(*point));
  }
  if (points.size() <= kMaxPoints) return std::vector<int>(points.begin(), points.end());
  return tl::unexpected(fmt::format("\"{}\": at most {} numbers are allowed", text, kMaxPoints));
}

/// `--sweep clients=1,2,4`, `--sweep keys=1,2` or `--sweep off`.
Option sweep_option(CapacityOptions& capacity) {
  Option option{.repeatable = true};
  option.parse = [&capacity](const std::string& text) -> tl::expected<void, std::string> {
    const std::size_t equals = text.find('=');
    const std::string over = text.substr(0, equals);
    const bool listed = equals != std::string::npos && (over == "clients" || over == "keys");
    const bool any = !capacity.sweep_clients.empty() || !capacity.sweep_keys.empty();
    if ((text != "off" && !listed) || (any ? text == "off" : !capacity.sweep)) {
      return tl::unexpected(
          fmt::format("\"{}\" is not clients=N,N,... or keys=N,N,..., or off alone", text));
    }
    capacity.sweep = listed;
    if (!listed) return {};
    auto numbers = parse_points(text, text.substr(equals + 1));
    if (!numbers) return tl::unexpected(numbers.error());
    (over == "clients" ? capacity.sweep_clients : capacity.sweep_keys) = std::move(*numbers);
    return {};
  };
  option.value = [&capacity]() -> results::OptionValue {
    if (!capacity.sweep) return std::string("off");
    std::vector<std::string> texts;
    for (const auto& [over, list] :
         {std::pair("clients", &capacity.sweep_clients), std::pair("keys", &capacity.sweep_keys)}) {
      if (!list->empty()) texts.push_back(fmt::format("{}={}", over, fmt::join(*list, ",")));
    }
    return texts;
  };
  return option;
}

/// A sweep of locks that are held for longer would take longer than it is worth.
constexpr Duration kLongHold = 50ms;

/// Chooses the time and the sweep if the user did not.
CapacityOptions with_defaults(CapacityOptions options) {
  const bool listed = !options.sweep_clients.empty() || !options.sweep_keys.empty();
  if (!options.time) {
    options.time = loadgen::default_search_time(options.workload, options.objective);
  }
  if (options.sweep && !listed && options.workload.hold.mean() <= kLongHold) {
    options.sweep_clients = doubling_up_to(options.workload.clients);
    if (!options.workload.key_per_client) options.sweep_keys = {1, 2, 4};
  }
  return options;
}

std::vector<Selected> select(const CapacityOptions& options) {
  if (options.strategies.empty()) {
    throw UsageError("capacity needs a strategy: lockbench capacity redis-queue --slo EXPR");
  }
  if (options.objective.empty()) {
    throw UsageError("capacity needs an objective: --slo 'acquire.p99<20ms'");
  }
  if (options.workload.key_per_client && !options.sweep_keys.empty()) {
    throw UsageError("--sweep keys cannot be combined with --keys per-client");
  }
  return select_for_load(options);
}

/// For any strategy.
loadgen::CapacityPlan plan_of(const CapacityOptions& options,
                              const deployment::Deployment& deployment, const std::string& run_id,
                              loadgen::RunWatcher* watcher) {
  loadgen::CapacityPlan plan{.run = plan_on(deployment, run_id),
                             .time = *options.time,
                             .objective = options.objective,
                             .sweep_clients = options.sweep_clients,
                             .sweep_keys = options.sweep_keys,
                             .planned_rate = options.planned_rate};
  plan.run.workload = options.workload;
  plan.run.watcher = watcher;
  return plan;
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
    // A control promises no exclusion.
    const bool violated =
        one.strategy->traits.promises_exclusion && measured.capacity.violated.value_or(false);
    if (violated) console.warn("exclusion was broken: " + name);
    const results::Capacity& capacity = measured.capacity;
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
  const CapacityOptions options = with_defaults(given);
  std::vector<Selected> selected = select(options);
  results::Result result = begin_result(options.output);
  result.capacity.emplace();
  const std::string out = out_path(options.output, result);

  Session session(options.output);
  LoadOptions widest = options;  // the servers must take the clients of every point
  for (const int clients : options.sweep_clients) {
    widest.workload.clients = std::max(widest.workload.clients, clients);
  }
  Metrics metrics = Metrics::start(widest, selected, result.id, session.console());
  const auto deployment = session.deploy(widest, selected, result.skipped);
  if (!deployment) return session.interrupted_early();

  Ending ending{.strict = options.output.strict};
  result.environment.servers = deployment->facts;
  result.workload = workload_record(options);
  ResultFile file(out, session.console());
  loadgen::CapacityPlan plan = plan_of(options, *deployment, result.id, metrics.watcher());
  plan.run.maker = maker_of(out, result, options.metrics);
  measure_all(std::move(plan), selected, result, file, ending, session);
  if (note_lost_ranks(out, result, session.console())) ending.rank_lost = true;
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
  options.add("time", "D", time, duration(1s, 168h),
              "how long to search the rates of a strategy, closed loops apart",
              "5m, for a long hold up to 30m");
  options.add_custom("sweep", "LIST", sweep_option(*this),
                     "closed loops to measure as well: clients=N,N,... or keys=N,N,..., or off",
                     "clients=1,2,4,... up to --clients and keys=1,2,4");
  options.add(
      "planned-rate", "R", planned_rate, number(0.001, 10'000'000),
      "planned sections per second: measured if it may be the limit, shows headroom; exit 99 "
      "unless it is kept",
      "none");
  const OptionList::Names no_search = {"load",
                                       "think",
                                       "rate",
                                       "arrival",
                                       "iterations",
                                       "shared-share",
                                       "contended-grants",
                                       "repeat",
                                       "hot-set",
                                       "trace",
                                       "trace-repeat",
                                       "locks-per-section",
                                       "lock-order",
                                       "deadlock-timeout",
                                       "renew-cap",
                                       "fault"};
  options.without(no_search, [&] { LoadOptions::declare(options); });
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

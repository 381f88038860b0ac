#include <fmt/format.h>

#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/commands/metrics.h"
#include "cli/console/finish.h"
#include "cli/console/session.h"
#include "loadgen/experiments/capacity_experiment.h"
#include "results/file/json.h"
#include "results/tables/capacity_sheet.h"

namespace lockbench::cli {
namespace {

/// Three for the fit, one to check it with.
constexpr std::size_t kFewestForScalability = 4;

/// 1, 2, 4, ... and the last one itself.
std::vector<int> doubling_up_to(int last) {
  std::vector<int> numbers;
  for (int number = 1; number < last; number *= 2) numbers.push_back(number);
  numbers.push_back(last);
  return numbers;
}

/// What was not said is decided here.
RunOptions completed(RunOptions options) {
  CapacityOptions& capacity = options.capacity;
  options.workload.duration = capacity.duration;
  options.workload.clients = capacity.clients;
  const bool listed = !capacity.sweep_clients.empty() || !capacity.sweep_keys.empty();
  if (capacity.sweep && !listed) {
    capacity.sweep_clients = doubling_up_to(capacity.clients);
    if (!options.workload.key_per_client) capacity.sweep_keys = {1, 2, 4};
  }
  return options;
}

tl::expected<std::vector<Selected>, UsageError> choose(const RunOptions& options) {
  const CapacityOptions& capacity = options.capacity;
  if (options.strategies.empty()) {
    return tl::unexpected(
        UsageError{"capacity needs a strategy: lockbench capacity redis-queue --slo EXPR"});
  }
  if (capacity.objective.empty()) {
    return tl::unexpected(UsageError{"capacity needs an objective: --slo 'acquire.p99<20ms'"});
  }
  const bool by_clients =
      std::any_of(capacity.extrapolations.begin(), capacity.extrapolations.end(),
                  [](const loadgen::Extrapolation& load) { return load.clients; });
  if (by_clients && capacity.sweep_clients.size() < kFewestForScalability) {
    return tl::unexpected(UsageError{
        fmt::format("--extrapolate: for clients, --sweep clients=N,N,... needs at least {} numbers",
                    kFewestForScalability)});
  }
  if (options.workload.key_per_client && !capacity.sweep_keys.empty()) {
    return tl::unexpected(UsageError{"--sweep keys does not go with --keys per-client"});
  }
  return select_for_load(options);
}

/// Of whichever strategy.
loadgen::CapacityPlan plan_of(const RunOptions& options, const deployment::Deployment& deployment,
                              const std::string& run_id, loadgen::RunWatcher* watcher) {
  return {.run_id = run_id,
          .workload = options.workload,
          .endpoints = deployment.endpoints,
          .counter_url = deployment.counter_url,
          .objective = options.capacity.objective,
          .sweep_clients = options.capacity.sweep_clients,
          .sweep_keys = options.capacity.sweep_keys,
          .sweep_duration = std::min<Duration>(std::chrono::seconds(1), options.capacity.duration),
          .planned_rate = options.capacity.planned_rate,
          .extrapolations = options.capacity.extrapolations,
          .watcher = watcher};
}

/// Nothing that was asked for is silently left out.
void complain_of_unanswered(const std::vector<loadgen::Extrapolation>& asked,
                            const results::Capacity& capacity, Console& console) {
  for (const loadgen::Extrapolation& load : asked) {
    const auto answers = [&](const results::CapacityModel& model) {
      return std::any_of(model.predictions.begin(), model.predictions.end(),
                         [&](const auto& prediction) { return prediction.at == load.text(); });
    };
    if (std::any_of(capacity.models.begin(), capacity.models.end(), answers)) continue;
    console.warn(fmt::format("--extrapolate {}: no model could be fitted to what {} did",
                             load.text(), capacity.strategy));
  }
}

/// One strategy after the other; what a stop left out is named.
void measure_all(loadgen::CapacityPlan plan, const std::vector<Selected>& selected,
                 results::Result& result, Ending& ending, Session& session) {
  Console& console = session.console();
  auto& capacities = result.capacity.emplace();
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
    // A control breaks no promise.
    const bool violated =
        one.strategy->traits.promises_exclusion && measured.capacity.violated.value_or(false);
    if (violated) console.warn("exclusion was broken: " + name);
    const results::Capacity& capacity = measured.capacity;
    if (!session.stopped()) {
      complain_of_unanswered(plan.extrapolations, capacity, console);
    }
    ending.errors = ending.errors || !measured.errors.empty();
    ending.exclusion_broken = ending.exclusion_broken || violated;
    ending.invalid = ending.invalid || capacity.limit == "generator";
    const bool too_much = capacity.planned_rate && *capacity.planned_rate > capacity.lowest;
    ending.threshold_missed = ending.threshold_missed || too_much || capacity.lowest <= 0;
    capacities.push_back(std::move(measured.capacity));
  }
  result.interrupted = ending.interrupted = session.stopped();
}

std::string text_of(const results::Result& result, Format format) {
  if (format == Format::json) return results::to_json(result);
  if (format == Format::csv) return results::capacity_csv(*result.capacity);
  const bool markdown = format == Format::markdown;
  const results::TextSheet sheet = results::sheet_of(*result.capacity);
  std::string text = markdown ? results::to_markdown(sheet) : results::to_table(sheet);
  for (const results::Capacity& capacity : *result.capacity) {
    const std::string chart = results::chart(capacity);
    text += fmt::format("\n{}{}\n", markdown ? "## " : "", capacity.strategy);
    if (!chart.empty()) text += markdown ? fmt::format("\n```\n{}```\n\n", chart) : chart;
    for (const std::string& line : results::readings(capacity)) {
      text += fmt::format("{}{}\n", markdown ? "- " : "", line);
    }
  }
  for (const results::Skipped& one : result.skipped) {
    text += fmt::format("{}skipped: {}: {}\n", markdown ? "- " : "", one.strategy, one.reason);
  }
  return text;
}

tl::expected<int, UsageError> capacity(const RunOptions& given) {
  RunOptions options = completed(given);
  auto selected = choose(options);
  if (!selected) return tl::unexpected(selected.error());
  results::Result result = begin_result();
  const auto out = out_path(options, result.id);
  if (!out) return tl::unexpected(out.error());

  Session session(options.quiet);
  RunOptions widest = options;  // the servers are to take all clients that there ever are
  for (const int clients : options.capacity.sweep_clients) {
    widest.workload.clients = std::max(widest.workload.clients, clients);
  }
  auto metrics = Metrics::start(widest, *selected, result.id, session.console());
  if (!metrics) return tl::unexpected(metrics.error());
  const auto deployed = session.deploy(widest, *selected, result.skipped);
  if (!deployed) return tl::unexpected(deployed.error());
  if (!*deployed) return session.interrupted_early();
  const deployment::Deployment& deployment = **deployed;

  Ending ending{.strict = options.strict};
  measure_all(plan_of(options, deployment, result.id, metrics->watcher()), *selected, result,
              ending, session);
  ending.errors = !metrics->push(session.console()) || ending.errors;
  result.environment.servers = deployment.facts;
  result.workload = record_of(options, capacity_options());
  const int code = finish(result, text_of(result, options.format), *out, ending, session.console(),
                          options.report.page);
  metrics->linger(session.console(), session.stop());
  return code;
}

}  // namespace

Command capacity_command() {
  return {.name = "capacity",
          .summary = "The highest load that keeps an objective, and what limits it.",
          .options = capacity_options(),
          .loads = true,
          .execute = capacity};
}

}  // namespace lockbench::cli

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <random>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/facts.h"
#include "cli/option_types.h"
#include "cli/publish.h"
#include "cli/select.h"
#include "cli/signals.h"
#include "cli/text.h"
#include "hazards/player.h"
#include "results/hazard_sheet.h"
#include "results/json.h"
#include "results/save.h"
#include "strategies/registry.h"

namespace lockbench {
namespace {

using hazards::Cell;
using hazards::Scenario;

Option scenarios_option() {
  Option option{.name = "scenarios", .value_name = "SCENARIO"};
  option.help = "a name or a glob, such as 'crash-*' (all)";
  option.repeatable = true;
  option.positional = true;
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    options.hazards.scenarios.push_back(text);
    return {};
  };
  option.get = [](const RunOptions& options) {
    const auto& given = options.hazards.scenarios;
    return given.empty() ? std::vector<std::string>{"all"} : given;
  };
  return option;
}

Option strategies_option() {
  Option option{.name = "strategies", .value_name = "S,..."};
  option.help = "names and globs, with commas in between (all)";
  option.repeatable = true;
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    std::size_t from = 0;
    while (from <= text.size()) {
      const std::size_t comma = std::min(text.find(',', from), text.size());
      if (comma > from) options.strategies.push_back(text.substr(from, comma - from));
      from = comma + 1;
    }
    return {};
  };
  option.get = [](const RunOptions& options) {
    return options.strategies.empty() ? std::vector<std::string>{"all"} : options.strategies;
  };
  return option;
}

Option explain_option() {
  Option option{.name = "explain", .value_name = "SCENARIO/STRATEGY"};
  option.help = "plays this one and shows all that happened";
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    if (text.find('/') == std::string::npos) {
      return tl::unexpected(
          fmt::format("\"{}\" is not SCENARIO/STRATEGY, such as late-release/redis-set-nx", text));
    }
    options.hazards.explain = text;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (options.hazards.explain.empty()) return nullptr;
    return options.hazards.explain;
  };
  return option;
}

std::vector<Option> hazard_options() {
  std::vector<Option> options = {scenarios_option(), strategies_option(), explain_option(),
                                 flag_option(
                                     "quick", "only the scenarios that decide most",
                                     [](auto& o) -> auto& { return o.hazards.quick; }),
                                 number_option(
                                     "at-once", "N", "plays side by side", Range<int>{1, 64},
                                     [](auto& o) -> auto& { return o.hazards.at_once; })};
  auto shared = some_run_options({"out", "format", "quiet", "config"});
  std::move(shared.begin(), shared.end(), std::back_inserter(options));
  return options;
}

tl::expected<std::vector<const Scenario*>, UsageError> select_scenarios(
    const std::vector<std::string>& patterns, bool quick) {
  const auto all = hazards::all_scenarios();
  std::vector<const Scenario*> selected;
  for (const std::string& pattern : patterns.empty() ? std::vector<std::string>{"*"} : patterns) {
    const std::string glob = pattern == "all" ? "*" : pattern;
    bool found = false;
    for (const Scenario* scenario : all) {
      if (fnmatch(glob.c_str(), std::string(scenario->name).c_str(), 0) != 0) continue;
      found = true;
      const bool there = std::find(selected.begin(), selected.end(), scenario) != selected.end();
      if (!there && (scenario->quick || !quick)) selected.push_back(scenario);
    }
    if (found) continue;
    std::vector<std::string_view> names;
    names.reserve(all.size());
    for (const Scenario* scenario : all) names.push_back(scenario->name);
    return tl::unexpected(UsageError{
        fmt::format("no such scenario \"{}\"{}", pattern, did_you_mean(pattern, names))});
  }
  if (selected.empty()) return tl::unexpected(UsageError{"--quick leaves none of these scenarios"});
  return selected;
}

/// In the order in which they are shown. What this build leaves out is skipped, or an error if
/// named.
tl::expected<std::vector<Cell>, UsageError> cells_of(const RunOptions& options,
                                                     std::vector<results::Skipped>& skipped) {
  std::vector<std::string> scenarios = options.hazards.scenarios, strategies = options.strategies;
  if (const std::string& explain = options.hazards.explain; !explain.empty()) {
    const std::size_t slash = explain.find('/');
    scenarios = {explain.substr(0, slash)};
    strategies = {explain.substr(slash + 1)};
  }
  const auto plays = select_scenarios(scenarios, options.hazards.quick);
  if (!plays) return tl::unexpected(plays.error());
  auto catalogue = all_strategies();
  const auto absent = absent_strategies();
  catalogue.insert(catalogue.end(), absent.begin(), absent.end());
  const auto selected = select_strategies(strategies, catalogue);
  if (!selected) return tl::unexpected(selected.error());
  std::vector<Cell> cells;
  for (const auto& [strategy, named] : *selected) {
    if (!strategy->not_built.empty()) {
      if (named) {
        return tl::unexpected(
            UsageError{fmt::format("{} cannot run here: {}", strategy->name, strategy->not_built)});
      }
      skipped.push_back({std::string(strategy->name), std::string(strategy->not_built)});
      continue;
    }
    for (const Scenario* scenario : *plays) cells.push_back(make_cell(*scenario, *strategy));
  }
  return cells;
}

results::OptionValue value_of(const hazards::Fact& fact) {
  return std::visit([](const auto& value) -> results::OptionValue { return value; }, fact);
}

results::Hazard to_result(const Cell& cell) {
  results::Hazard hazard{.scenario = std::string(cell.scenario->name),
                         .strategy = std::string(cell.strategy->name),
                         .expected = std::string(to_string(cell.expected)),
                         .observed = std::string(to_string(*cell.observed)),
                         .agrees = cell.agrees()};
  for (const auto& [name, fact] : cell.evidence) hazard.evidence[name] = value_of(fact);
  hazard.evidence["reason"] = cell.reason;
  for (const auto& entry : cell.timeline) {
    hazard.timeline.push_back({seconds(entry.at - cell.began), entry.who, entry.what});
  }
  return hazard;
}

std::string text_of(const results::Result& result, const RunOptions& options) {
  const results::MatrixOptions look{.color = may_color(stdout),
                                    .width = is_terminal(stdout) ? terminal_width(stdout) : 0};
  switch (options.format) {
    case Format::json:
      return results::to_json(result);
    case Format::csv:
      return results::to_csv(*result.hazards);
    case Format::markdown:
      return results::to_matrix_markdown(*result.hazards);
    case Format::table:
      break;
  }
  if (!options.hazards.explain.empty() && !result.hazards->empty()) {
    return results::explain(result.hazards->front());
  }
  return results::to_matrix(*result.hazards, look) + "\n" + results::reasons(*result.hazards, look);
}

/// Tells how far it is: on a terminal in place, else now and then.
class HazardProgress {
 public:
  HazardProgress(Console& console, const std::vector<Cell>& cells)
      : console_(console), total_(std::count_if(cells.begin(), cells.end(), [](const Cell& cell) {
          return !cell.played();
        })) {}

  void on_done(const Cell& cell) {
    if (cell.took == Duration::zero()) return;  // there was nothing to play
    ++done_;
    const std::string name = fmt::format("{} / {}", cell.scenario->name, cell.strategy->name);
    if (!cell.played()) {
      console_.warn(fmt::format("{} could not be played: {}", name, cell.reason));
    } else if (!cell.agrees()) {
      console_.warn(fmt::format("{}: {}, but {} is declared", name, to_string(*cell.observed),
                                to_string(cell.expected)));
    }
    const std::string line = fmt::format("{} of {} played", done_, total_);
    if (console_.terminal()) {
      console_.status(line);
    } else if (done_ == total_ || done_ % 50 == 0) {
      console_.note(line);
    }
  }

 private:
  Console& console_;
  const std::ptrdiff_t total_;
  std::ptrdiff_t done_ = 0;
};

std::map<std::string, results::OptionValue> record(const RunOptions& options) {
  auto workload = workload_record(options);
  for (const Option& option : hazard_options()) {
    std::string key(option.name);
    std::replace(key.begin(), key.end(), '-', '_');
    workload[key] = option.get(options);
  }
  return workload;
}

/// What was not played is skipped, and says why.
void collect(const std::vector<Cell>& cells, results::Result& result, Ending& ending) {
  result.hazards.emplace();
  for (const Cell& cell : cells) {
    if (cell.played()) {
      result.hazards->push_back(to_result(cell));
      ending.exclusion_broken = ending.exclusion_broken || !cell.agrees();
    } else if (!cell.reason.empty()) {
      result.skipped.push_back({std::string(cell.strategy->name),
                                fmt::format("{}: {}", cell.scenario->name, cell.reason)});
      ending.errors = ending.errors || cell.failed;
    }
  }
}

tl::expected<int, UsageError> play_hazards(const RunOptions& options) {
  const WallTime now = std::chrono::system_clock::now();
  results::Result result{.id = run_id(now, std::random_device()()), .started_at = rfc3339(now)};
  auto cells = cells_of(options, result.skipped);
  if (!cells) return tl::unexpected(cells.error());
  const std::string out =
      options.out.empty() ? fmt::format("results/runs/{}.json", result.id) : options.out;
  if (auto writable = results::check_writable(out); !writable) {
    return tl::unexpected(UsageError{fmt::format("--out: {}", writable.error())});
  }
  prepare_signals();
  Console console(stderr, is_terminal(stderr), options.quiet);
  const std::stop_source stop;
  const StopOnSignal on_signal(stop, console);
  {
    const auto house = hazards::House::open({});
    if (!house) return tl::unexpected(UsageError{house.error()});
    HazardProgress progress(console, *cells);
    play_all(
        **house, *cells, options.hazards.at_once, [&](const Cell& cell) { progress.on_done(cell); },
        stop.get_token());
  }
  Ending ending{.interrupted = stop.stop_requested()};
  collect(*cells, result, ending);
  result.interrupted = ending.interrupted;
  result.lockbench = build_facts();
  result.environment = machine_facts();
  result.workload = record(options);
  const bool saved = save_result(result, out, console);
  const bool printed = print_text(text_of(result, options), console);
  ending.errors = ending.errors || !saved || !printed;
  return exit_code_of(ending);
}

}  // namespace

Command hazards_command() {
  return {.name = "hazards",
          .summary = "Plays faults on real servers: which lock survives which.",
          .options = hazard_options(),
          .execute = play_hazards};
}

}  // namespace lockbench

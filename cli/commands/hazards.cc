#include "results/tables/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/console/publish.h"
#include "cli/console/session.h"
#include "cli/options/load_options.h"
#include "cli/options/select.h"
#include "cli/options/text.h"
#include "cli/options/value_types.h"
#include "hazards/player.h"
#include "results/file/model.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

using hazards::Cell;
using hazards::Repeated;

/// The names of all scenarios.
std::string scenario_names() {
  std::string names;
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    names += fmt::format(" {}", scenario->name);
  }
  return names;
}

ValueType<std::string> scenario_and_strategy() {
  auto type = path();  // recorded as null if empty
  type.parse = [](const std::string& text) -> tl::expected<std::string, std::string> {
    if (text.find_first_of("*?[") != std::string::npos) {
      return tl::unexpected(fmt::format("\"{}\": globs are not allowed", text));
    }
    if (text.find('/') != std::string::npos) return text;
    return tl::unexpected(
        fmt::format("\"{}\" is not SCENARIO/STRATEGY, such as late-release/redis-set-nx", text));
  };
  return type;
}

struct HazardOptions {
  static constexpr std::string_view kCommand = "hazards";
  std::vector<std::string> scenarios, strategies;  ///< names and globs as given; none: all
  std::string explain;                             ///< "SCENARIO/STRATEGY", or empty
  bool quick = false;
  bool tls = false;  ///< of the servers
  int at_once = 6;   ///< plays side by side
  int repeat = 1;    ///< plays of each cell
  OutputOptions output;

  void declare(OptionList& options) {
    const std::vector<std::string> all = {"all"};
    Option& names = options.add("scenarios", "SCENARIO", scenarios, any_text(),
                                "name or glob, such as 'crash-*', of:" + scenario_names(), "all");
    names.positional = true;
    names.value_if_unset = all;
    options
        .add("strategies", "S,...", strategies, any_text(), "names and globs, separated by commas",
             "all")
        .value_if_unset = all;
    options.add("explain", "SCENARIO/STRATEGY", explain, scenario_and_strategy(),
                "play this one and show everything that happened");
    options.add_flag("quick", quick, "play only the most telling scenarios");
    options.add("repeat", "N", repeat, whole_number(1, 1000),
                "plays of each cell, to see whether they all end alike");
    options.add("at-once", "N", at_once, whole_number(1, 64), "plays side by side");
    options.add_flag("tls", tls, "servers speak TLS, and clients verify them");
    options.without({"resume", "strict"}, [&] { output.declare(options); });
  }

  void complete(const OptionList& /*options*/) const {
    if (!explain.empty() && !(scenarios.empty() && strategies.empty())) {
      throw UsageError("--explain names its scenario and strategy; no others can be given");
    }
  }
};

/// Names and globs ("crash-*", "all"; none at all: all).
std::vector<const hazards::Scenario*> select_scenarios(const std::vector<std::string>& patterns,
                                                       bool quick) {
  const auto all = hazards::all_scenarios();
  std::vector<const hazards::Scenario*> selected;
  for (const std::string& pattern : patterns.empty() ? std::vector<std::string>{"all"} : patterns) {
    bool found = false;
    for (const hazards::Scenario* scenario : all) {
      if (!matches(pattern, scenario->name)) continue;
      found = true;
      const bool there = std::find(selected.begin(), selected.end(), scenario) != selected.end();
      if (!there && (scenario->quick || !quick)) selected.push_back(scenario);
    }
    if (found) continue;
    std::vector<std::string_view> names;
    names.reserve(all.size());
    for (const hazards::Scenario* scenario : all) names.push_back(scenario->name);
    throw UsageError("no such scenario \"{}\"{} (lockbench hazards --help shows all)", pattern,
                     did_you_mean(pattern, names));
  }
  if (selected.empty()) throw UsageError("--quick leaves none of these scenarios");
  return selected;
}

/// The strategies of these names and globs that are part of this build. The others are skipped; one
/// that was named is an error.
std::vector<const Descriptor*> select_built(const std::vector<std::string>& patterns,
                                            std::vector<results::Skipped>& skipped) {
  std::vector<const Descriptor*> built;
  for (const auto& [strategy, named] : select_strategies(patterns, with_absent())) {
    if (strategy->not_built.empty()) {
      built.push_back(strategy);
    } else if (named) {
      throw UsageError("{} cannot run here: {}", strategy->name, strategy->not_built);
    } else {
      skipped.push_back({std::string(strategy->name), std::string(strategy->not_built)});
    }
  }
  return built;
}

/// In the order in which they are shown.
std::vector<Cell> cells_of(const HazardOptions& options, std::vector<results::Skipped>& skipped) {
  std::vector<std::string> scenarios = options.scenarios, strategies = options.strategies;
  if (const std::string& explain = options.explain; !explain.empty()) {
    const std::size_t slash = explain.find('/');
    scenarios = {explain.substr(0, slash)};
    strategies = {explain.substr(slash + 1)};
  }
  const auto plays = select_scenarios(scenarios, options.quick);
  const auto selected = select_built(strategies, skipped);
  std::vector<Cell> cells;
  for (const Descriptor* strategy : selected) {
    for (const hazards::Scenario* scenario : plays) {
      cells.push_back(make_cell(*scenario, *strategy));
    }
  }
  return cells;
}

results::OptionValue value_of(const hazards::Fact& fact) {
  return std::visit([](const auto& value) -> results::OptionValue { return value; }, fact);
}

results::Hazard to_result(const Repeated& repeated) {
  const Cell& cell = repeated.shown;
  results::Hazard hazard{.scenario = std::string(cell.scenario->name),
                         .strategy = std::string(cell.strategy->name),
                         .expected = std::string(to_string(cell.expected)),
                         .observed = std::string(to_string(*cell.observed)),
                         .agrees = cell.agrees()};
  for (const auto& [name, fact] : cell.evidence) hazard.evidence[name] = value_of(fact);
  hazard.evidence["reason"] = cell.reason;
  hazard.evidence["outcomes"] = repeated.tally();
  if (repeated.unstable()) hazard.evidence["unstable"] = true;
  for (const auto& entry : cell.timeline) {
    hazard.timeline.push_back({seconds(entry.at - cell.began), entry.who, entry.what});
  }
  return hazard;
}

std::string text_of(const results::Result& result, const HazardOptions& options) {
  const bool one_play = options.output.format == Format::table && !options.explain.empty();
  if (!one_play || result.hazards->empty()) return render(result, options.output);
  return results::styled(results::explain(result.hazards->front()), look_of(options.output).style);
}

/// Shows progress: in place on a terminal, every 50 plays elsewhere.
class HazardProgress {
 public:
  HazardProgress(Console& console, const std::vector<Cell>& cells)
      : console_(console), total_(std::count_if(cells.begin(), cells.end(), [](const Cell& cell) {
          return !cell.played();
        })) {}

  void on_done(const Cell& cell) {
    if (cell.took == Duration::zero()) return;  // not played
    ++done_;
    const std::string name = fmt::format("{} / {}", cell.scenario->name, cell.strategy->name);
    if (!cell.played()) {
      warn_once(fmt::format("{} could not be played: {}", name, cell.reason));
    } else if (cell.disturbed) {
      warn_once(fmt::format("{}: not played: {}", name, cell.reason));
    } else if (!cell.agrees()) {
      warn_once(fmt::format("{}: {}, but {} is declared", name, to_string(*cell.observed),
                            to_string(cell.expected)));
    }
    const std::string line = fmt::format("{} of {} plays done", done_, total_);
    if (console_.terminal()) {
      console_.status(line);
    } else if (done_ == total_ || done_ % 50 == 0) {
      console_.note(line);
    }
  }

 private:
  /// Repeated plays of a cell often give the same warning.
  void warn_once(const std::string& line) {
    if (warned_.insert(line).second) console_.warn(line);
  }

  Console& console_;
  const std::ptrdiff_t total_;
  std::ptrdiff_t done_ = 0;
  std::set<std::string> warned_;
};

/// With what was played; the rest is skipped with its reason, if it has one.
results::Result with_plays(results::Result result, const std::vector<Repeated>& cells) {
  for (const Repeated& cell : cells) {
    const std::string scenario(cell.shown.scenario->name), strategy(cell.shown.strategy->name);
    if (cell.shown.played()) {
      result.hazards->push_back(to_result(cell));
    } else if (!cell.shown.reason.empty()) {
      result.skipped.push_back({strategy, fmt::format("{}: {}", scenario, cell.shown.reason)});
    }
  }
  return result;
}

/// That a strategy could not be played is an error if it was named.
Ending ending_of(const std::vector<Repeated>& cells, const HazardOptions& options) {
  std::set<std::string_view> named(options.strategies.begin(), options.strategies.end());
  const std::string_view explain = options.explain;
  if (!explain.empty()) named = {explain.substr(explain.find('/') + 1)};
  Ending ending;
  for (const Repeated& cell : cells) {
    const bool skipped =
        cell.shown.disturbed || (!cell.shown.played() && !cell.shown.reason.empty());
    ending.errors |=
        !cell.failures.empty() || (skipped && named.contains(cell.shown.strategy->name));
    ending.exclusion_broken |= cell.shown.played() && !cell.shown.agrees();
  }
  return ending;
}

void warn_of_unstable(const std::vector<Repeated>& cells, Console& console) {
  for (const Repeated& cell : cells) {
    if (!cell.shown.played() || !cell.unstable()) continue;
    console.warn(fmt::format("unstable: {} / {}: {}", cell.shown.scenario->name,
                             cell.shown.strategy->name, cell.tally()));
  }
}

/// Plays all, and keeps what is over.
void play_and_keep(hazards::ServerPool& servers, std::vector<Cell>& plays, std::size_t cells,
                   const HazardOptions& options, const results::Result& result, ResultFile& file,
                   Session& session) {
  HazardProgress progress(session.console(), plays);
  std::vector<Cell> over = plays;  // those of `plays` change meanwhile
  const auto on_done = [&](const Cell& cell) {
    progress.on_done(cell);
    over.at(static_cast<std::size_t>(&cell - plays.data())) = cell;
    if (file.has_time()) file.keep(with_plays(result, hazards::gather(over, cells)));
  };
  play_all(servers, plays, options.at_once, on_done, session.stop());
}

int play_hazards(const HazardOptions& options) {
  results::Result result = begin_result(options.output);
  const std::vector<Cell> cells = cells_of(options, result.skipped);
  result.hazards.emplace();
  const std::string out = out_path(options.output, result);
  Session session(options.output);
  Console& console = session.console();
  result.workload = workload_record(options);
  result.interrupted = true;  // until it is over
  ResultFile file(out, console);
  std::vector<Cell> plays = hazards::repeated(cells, options.repeat);
  std::vector<Repeated> played;
  {
    const auto servers = must(hazards::ServerPool::open({.tls = options.tls}));
    play_and_keep(*servers, plays, cells.size(), options, result, file, session);
    result.interrupted = session.stopped();
    played = hazards::gather(plays, cells.size());
    result = with_plays(std::move(result), played);
    file.keep(result);
  }
  warn_of_unstable(played, console);
  return finish(result, options.output, file, ending_of(played, options), text_of(result, options));
}

}  // namespace

Command hazards_command() {
  return make_command<HazardOptions>(
      {.task = kMeasure,
       .summary = "Inject faults into real servers: which lock survives which.",
       .example = "lockbench hazards 'crash-*' --strategies redis-set-nx,redlock"},
      play_hazards);
}

}  // namespace lockbench::cli

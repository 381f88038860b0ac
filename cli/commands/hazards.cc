#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/commands/commands.h"
#include "cli/console/session.h"
#include "hazards/player.h"
#include "hazards/simulated/venue.h"
#include "results/file/save.h"
#include "results/report/report.h"
#include "simulate/simulation.h"

namespace lockbench::cli {
namespace {

using hazards::Cell;
using hazards::Repeated;

tl::expected<std::string, std::string> parse_cell(const std::string& text) {
  if (text.find_first_of("*?[") != std::string::npos) {
    return tl::unexpected(fmt::format("\"{}\": globs are not allowed", text));
  }
  if (text.find('/') != std::string::npos) return text;
  return tl::unexpected(
      fmt::format("\"{}\" is not SCENARIO/STRATEGY, such as late-release/redis-set-nx", text));
}

struct HazardOptions {
  static constexpr std::string_view kCommand = "hazards";
  /// Names and globs as given; none: all. --client adds the names of its programs.
  std::vector<std::string> scenarios, strategies;
  std::vector<std::string> programs;
  std::optional<std::string> explain;  ///< "SCENARIO/STRATEGY"
  bool quick = false;
  bool simulated = false;  ///< on simulated machines
  bool tls = false;        ///< of the servers
  int at_once = 6;         ///< plays side by side
  int repeat = 1;          ///< plays of each cell
  std::string history;
  std::string svg;  ///< of --explain; empty: none
  OutputOptions output;

  HazardOptions() { output.judges = true; }

  void declare(OptionList& options) {
    const std::vector<std::string> all = {"all"};
    std::string help = "name or glob, such as 'crash-*', of:";
    for (const auto* scenario : hazards::all_scenarios()) {
      help += fmt::format(" {}", scenario->name);
    }
    Option& names = options.add("scenarios", "SCENARIO", scenarios, any_text(), help, "all");
    names.positional = true;
    names.value_if_unset = all;
    options
        .add("strategies", "STRATEGY,...", strategies, any_text(),
             "names and globs, separated by commas", "all")
        .value_if_unset = all;
    declare_clients(options, programs);
    options.add("explain", "SCENARIO/STRATEGY", explain, parsed(parse_cell),
                "play only this cell, and show everything that happens");
    options
        .add("svg", "FILE", svg, path(),
             "with --explain: also draw which client relies on the lock, and when")
        .effect = Effect::output;
    options.add_flag("quick", quick, "play only the most telling scenarios");
    options.add_flag("simulated", simulated,
                     "on simulated machines, in seconds: no server and no process is started");
    options.add("repeat", "N", repeat, whole_number(1, 1000),
                "plays of each cell, to see whether its outcome is stable");
    options.add("at-once", "N", at_once, whole_number(1, 64), "plays side by side");
    options.add_flag("tls", tls, "servers speak TLS, and clients verify them");
    declare_history(options, history);
    options.without({"resume", "strict"}, [&] { output.declare(options); });
  }

  void complete(const OptionList& options) {
    options.needs("svg", explain.has_value(), "--explain SCENARIO/STRATEGY");
    if (simulated && (tls || !programs.empty() || !history.empty())) {
      throw UsageError("--simulated cannot be combined with --tls, --client or --history");
    }
    if (!svg.empty()) must(results::check_writable(svg), "--svg");
    if (explain && !(scenarios.empty() && strategies.empty())) {
      throw UsageError("--explain names its scenario and strategy; no others can be given");
    }
    std::vector<std::string> explained;
    take_clients(programs, {}, explain ? explained : strategies);
  }
};

/// The scenarios that match these names and globs ("crash-*", "all"). No patterns: all.
std::vector<const hazards::Scenario*> select_scenarios(const std::vector<std::string>& patterns,
                                                       bool quick) {
  const auto all = hazards::all_scenarios();
  const auto names = results::each_of(all, &hazards::Scenario::name);
  std::vector<const hazards::Scenario*> selected;
  for (const std::string& pattern : patterns.empty() ? std::vector<std::string>{"all"} : patterns) {
    if (std::ranges::none_of(names, [&](auto name) { return matches(pattern, name); })) {
      throw UsageError("no such scenario \"{}\"{} (lockbench hazards --help shows all)", pattern,
                       did_you_mean(pattern, names));
    }
    for (const hazards::Scenario* scenario : all) {
      if (!matches(pattern, scenario->name) || (quick && !scenario->quick)) continue;
      if (std::ranges::count(selected, scenario) == 0) selected.push_back(scenario);
    }
  }
  if (selected.empty()) throw UsageError("--quick leaves none of these scenarios");
  return selected;
}

/// "these can: redis-set-nx, ..."
std::string which_can() {
  std::vector<std::string_view> names;
  for (const Descriptor* strategy : all_strategies()) {
    if (simulate::why_not(*strategy).empty()) names.push_back(strategy->name);
  }
  return fmt::format("these can: {}", fmt::join(names, ", "));
}

/// The cells in the order in which they are shown. A strategy that this build leaves out is
/// skipped, or an error if it was named.
std::vector<Cell> cells_of(const HazardOptions& options, std::vector<results::Skipped>& skipped) {
  const auto plays = select_scenarios(options.scenarios, options.quick);
  std::vector<Cell> cells;
  for (const auto& [strategy, named] : select_strategies(options.strategies, with_absent())) {
    // Without a lock there is no holder to harm.
    if (strategy->traits.updates && named) {
      throw UsageError("{} cannot run here: it takes no lock", strategy->name);
    }
    if (strategy->traits.updates) continue;
    const std::string why = options.simulated ? simulate::why_not(*strategy) : "";
    if (!why.empty()) {
      if (named) {
        throw UsageError("{} cannot be simulated: {}; {}", strategy->name, why, which_can());
      }
      skipped.push_back({std::string(strategy->name), "not simulated: " + why});
      continue;
    }
    if (strategy->not_built.empty()) {
      for (const auto* scenario : plays) cells.push_back(make_cell(*scenario, *strategy));
    } else if (named) {
      throw UsageError("{} cannot run here: {}", strategy->name, strategy->not_built);
    } else {
      skipped.push_back({std::string(strategy->name), std::string(strategy->not_built)});
    }
  }
  if (options.simulated && cells.empty()) {
    throw UsageError("none of these strategies can be simulated; {}", which_can());
  }
  return cells;
}

std::string text_of(const results::Result& result, const HazardOptions& options) {
  const bool one_play = options.output.format == Format::table && options.explain;
  if (!one_play || result.hazards->empty()) return render(result, options.output);
  return results::styled(results::explain(result.hazards->front()), look_of(options.output).style);
}

/// Shows progress: in place on a terminal, every 50 plays elsewhere.
class HazardProgress {
 public:
  HazardProgress(Console& console, const std::vector<Cell>& cells)
      : console_(console),
        total_(std::ranges::count_if(cells, [](const Cell& cell) { return !cell.played(); })) {}

  void on_done(const Cell& cell) {
    if (cell.took == Duration::zero()) return;  // not played
    ++done_;
    std::string trouble;
    if (!cell.played()) {
      trouble = " could not be played: " + cell.reason;
    } else if (cell.disturbed) {
      trouble = ": not played: " + cell.reason;
    } else if (!cell.agrees()) {
      trouble = fmt::format(": {}, but {} is declared", to_string(*cell.observed),
                            to_string(cell.expected));
    }
    const std::string warning =
        fmt::format("{} / {}{}", cell.scenario->name, cell.strategy->name, trouble);
    // Repeated plays of a cell often give the same warning.
    if (!trouble.empty() && warned_.insert(warning).second) console_.warn(warning);
    const std::string line = fmt::format("{} of {} plays done", done_, total_);
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
  std::set<std::string> warned_;
};

/// Adds the cells that were played, and lists those that could not be as skipped.
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

/// A strategy that could not be played is an error if it was named.
Ending ending_of(const std::vector<Repeated>& cells, const HazardOptions& options) {
  Ending ending;
  for (const auto& [shown, outcomes, failures] : cells) {
    const bool named = std::ranges::count(options.strategies, shown.strategy->name) > 0;
    const bool skipped = shown.disturbed || (!shown.played() && !shown.reason.empty());
    ending.errors |= !failures.empty() || (skipped && named);
    ending.exclusion_broken |= shown.played() && !shown.agrees();
  }
  return ending;
}

int play_hazards(const HazardOptions& given) {
  HazardOptions options = given;
  if (const auto& explain = given.explain) {
    const std::size_t slash = explain->find('/');
    options.scenarios = {explain->substr(0, slash)};
    options.strategies = {explain->substr(slash + 1)};
  }
  results::Result result = begin_result(options.output);
  const std::vector<Cell> cells = cells_of(options, result.skipped);
  result.hazards.emplace();
  const std::string out = out_path(options.output, result);
  Session session(options.output);
  Console& console = session.console();
  result.workload = workload_record(given);
  result.interrupted = true;  // until it is over
  ResultFile file(out, console);
  std::unique_ptr<history::Log> log;
  if (!options.history.empty()) log = must(history::Log::open(options.history), "--history");
  std::vector<Cell> plays = hazards::repeated(cells, options.repeat);
  std::vector<Repeated> played;
  {
    std::unique_ptr<hazards::ServerPool> servers;
    if (!options.simulated) {
      servers = must(hazards::ServerPool::open({.tls = options.tls, .history = log.get()}));
    }
    HazardProgress progress(console, plays);
    std::vector<Cell> over = plays;  // a copy to save: other threads change `plays`
    const auto on_done = [&](const Cell& cell) {
      progress.on_done(cell);
      over.at(static_cast<std::size_t>(&cell - plays.data())) = cell;
      // Gathers only if it is saved.
      if (file.has_time()) file.keep(with_plays(result, hazards::gather(over, cells.size())));
    };
    const auto play_one = [&](const Cell& cell) {
      if (servers) return hazards::play(*servers, *cell.scenario, *cell.strategy);
      const auto seed = static_cast<std::uint64_t>(cell.round);
      return hazards::play_simulated(*cell.scenario, *cell.strategy, seed);
    };
    play_all(play_one, plays, options.at_once, on_done, session.stop());
    result.interrupted = session.stopped();
    played = hazards::gather(plays, cells.size());
    result = with_plays(std::move(result), played);
    file.keep(result);
  }
  for (const Repeated& cell : played) {
    if (!cell.shown.played() || !cell.unstable()) continue;
    console.warn(fmt::format("unstable: {} / {}: {}", cell.shown.scenario->name,
                             cell.shown.strategy->name, cell.tally()));
  }
  Ending ending = ending_of(played, options);
  if (log) ending.errors |= !close_history(*log, console);
  if (!options.svg.empty() && !result.hazards->empty()) {
    const std::string picture = results::report::timeline_svg(result.hazards->front());
    ending.errors |= !save_file(options.svg, picture, console, "the picture was ");
  }
  return finish(result, options.output, file, ending, text_of(result, options));
}

}  // namespace

results::Hazard to_result(const Repeated& repeated) {
  const Cell& cell = repeated.shown;
  results::Hazard hazard{.scenario = std::string(cell.scenario->name),
                         .strategy = std::string(cell.strategy->name),
                         .expected = std::string(to_string(cell.expected)),
                         .observed = std::string(to_string(*cell.observed)),
                         .agrees = cell.agrees()};
  for (const auto& [name, fact] : cell.evidence) {
    results::OptionValue& place = hazard.evidence[name];
    std::visit([&](const auto& value) { place = value; }, fact);
  }
  hazard.evidence["reason"] = cell.reason;
  hazard.evidence["outcomes"] = repeated.tally();
  if (repeated.unstable()) hazard.evidence["unstable"] = true;
  for (const auto& entry : cell.timeline) {
    hazard.timeline.push_back({seconds(entry.at - cell.began), entry.who, entry.what});
  }
  return hazard;
}

Command hazards_command() {
  return make_command<HazardOptions>(
      {.task = kMeasure,
       .summary = "Inject faults into real servers to see which locks survive them.",
       .example = "lockbench hazards 'crash-*' --strategies redis-set-nx,redlock",
       .asks = "Which faults break a lock: crashes, pauses, failovers, clocks?"},
      play_hazards);
}

}  // namespace lockbench::cli

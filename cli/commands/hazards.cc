#include "cli/commands/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/commands/commands.h"
#include "cli/console/finish.h"
#include "cli/console/session.h"
#include "cli/options/option_types.h"
#include "hazards/repeat.h"
#include "results/file/json.h"
#include "results/tables/belief_sheet.h"
#include "results/tables/hazard_sheet.h"

namespace lockbench::cli {
namespace {

using hazards::Cell;
using hazards::Repeated;

constexpr int kUsuallyAtOnce = 6;

/// In the order in which they are shown.
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
  const auto selected = select_built(strategies, skipped);
  if (!selected) return tl::unexpected(selected.error());
  std::vector<Cell> cells;
  for (const Descriptor* strategy : *selected) {
    for (const hazards::Scenario* scenario : *plays) {
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

std::string text_of(const results::Result& result, const RunOptions& options) {
  const results::MatrixOptions look{.color = may_color(stdout),
                                    .width = is_terminal(stdout) ? terminal_width(stdout) : 0};
  // One play's gap is an anecdote, which the timeline tells.
  const bool gaps = options.hazards.repeat > 1 && !result.belief_gaps.empty();
  switch (options.format) {
    case Format::json:
      return results::to_json(result);
    case Format::csv:
      return results::to_csv(*result.hazards);
    case Format::markdown:
      return results::to_matrix_markdown(*result.hazards) +
             (gaps ? "\n" + to_markdown(results::sheet_of(result.belief_gaps)) : "");
    case Format::table:
      break;
  }
  if (!options.hazards.explain.empty() && !result.hazards->empty()) {
    return results::explain(result.hazards->front());
  }
  return results::to_matrix(*result.hazards, look) + "\n" +
         results::reasons(*result.hazards, look) +
         (gaps ? "\n" + to_table(results::sheet_of(result.belief_gaps)) : "");
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
      tell(fmt::format("{} could not be played: {}", name, cell.reason));
    } else if (!cell.agrees()) {
      tell(fmt::format("{}: {}, but {} is declared", name, to_string(*cell.observed),
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
  /// Of plays that are repeated, once.
  void tell(const std::string& line) {
    if (told_.insert(line).second) console_.warn(line);
  }

  Console& console_;
  const std::ptrdiff_t total_;
  std::ptrdiff_t done_ = 0;
  std::set<std::string> told_;
};

/// What was not played is skipped, and says why; of a strategy that was named it is an error.
void collect(const std::vector<Repeated>& cells, const RunOptions& options, results::Result& result,
             Ending& ending, Console& console) {
  std::set<std::string> named(options.strategies.begin(), options.strategies.end());
  const std::string& explain = options.hazards.explain;
  if (!explain.empty()) named = {explain.substr(explain.find('/') + 1)};
  result.hazards.emplace();
  for (const Repeated& cell : cells) {
    const std::string scenario(cell.shown.scenario->name), strategy(cell.shown.strategy->name);
    ending.errors = ending.errors || !cell.failures.empty();
    if (!cell.shown.played()) {
      if (!cell.shown.reason.empty()) {
        result.skipped.push_back({strategy, fmt::format("{}: {}", scenario, cell.shown.reason)});
        ending.errors = ending.errors || named.contains(strategy);
      }
      continue;
    }
    result.hazards->push_back(to_result(cell));
    ending.exclusion_broken = ending.exclusion_broken || !cell.shown.agrees();
    if (cell.unstable()) {
      console.warn(fmt::format("unstable: {} / {}: {}", scenario, strategy, cell.tally()));
    }
    if (!cell.belief_gaps.empty()) {
      result.belief_gaps.push_back(results::make_belief_gap(scenario, strategy, cell.belief_gaps));
    }
  }
}

tl::expected<void, UsageError> check_together(const RunOptions& given) {
  const HazardOptions& options = given.hazards;
  const auto error = [](const char* text) { return tl::unexpected(UsageError{text}); };
  if (!options.explain.empty() && !(options.scenarios.empty() && given.strategies.empty())) {
    return error("--explain: names its scenario and strategy itself; not with others");
  }
  if (options.explain.find_first_of("*?[") != std::string::npos) {
    return error("--explain: one SCENARIO/STRATEGY, no glob");
  }
  if (options.dose) {
    if (!options.explain.empty()) return error("--dose: not together with --explain");
    if (options.quick)
      return error("--dose: not together with --quick, which takes scenarios away");
    if (options.repeat > 1) return error("--repeat: with --dose it is --dose-plays N");
    return {};
  }
  if (options.dose_plays) return error("--dose-plays: only with --dose");
  if (!options.dose_ratios.empty()) return error("--dose-ratio: only with --dose");
  return {};
}

tl::expected<int, UsageError> play_matrix(const RunOptions& options) {
  results::Result result = begin_result();
  const auto cells = cells_of(options, result.skipped);
  if (!cells) return tl::unexpected(cells.error());
  const auto out = out_path(options, result.id);
  if (!out) return tl::unexpected(out.error());
  Session session(options.quiet);
  Console& console = session.console();
  std::vector<Cell> plays = hazards::repeated(*cells, options.hazards.repeat);
  {
    const auto servers = hazards::ServerPool::open({});
    if (!servers) return tl::unexpected(UsageError{servers.error()});
    HazardProgress progress(console, plays);
    play_all(
        **servers, plays, options.hazards.at_once.value_or(kUsuallyAtOnce),
        [&](const Cell& cell) { progress.on_done(cell); }, session.stop());
  }
  Ending ending{.interrupted = session.stopped()};
  collect(hazards::gather(plays, cells->size()), options, result, ending, console);
  result.interrupted = ending.interrupted;
  result.workload = record_of(options, hazard_options());
  return finish(result, text_of(result, options), *out, ending, console, options.report.page);
}

tl::expected<int, UsageError> play_hazards(const RunOptions& options) {
  if (auto fits = check_together(options); !fits) return tl::unexpected(fits.error());
  return options.hazards.dose ? play_doses(options) : play_matrix(options);
}

}  // namespace

Command hazards_command() {
  return {.name = "hazards",
          .summary = "Plays faults on real servers: which lock survives which.",
          .options = hazard_options(),
          .execute = play_hazards};
}

}  // namespace lockbench::cli

#include "results/tables/hazards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "results/file/option_values.h"
#include "results/tables/outcomes.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

/// Of a cell of the matrix, in columns, with the gap before it.
constexpr std::size_t kCellWidth = 10;

std::vector<std::string> in_order(const std::vector<Hazard>& hazards, std::string Hazard::*name) {
  std::vector<std::string> names;
  for (const Hazard& hazard : hazards) {
    if (std::find(names.begin(), names.end(), hazard.*name) == names.end()) {
      names.push_back(hazard.*name);
    }
  }
  return names;
}

std::string padded(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(text) + std::string(width - std::min(width, used), ' ');
}

Cell outcome_cell(const Hazard& hazard) {
  const OutcomeWord* const word = find_outcome(hazard.observed);
  return {fmt::format("{}{}", word == nullptr ? "?" : word->shown, outcome_suffix(hazard)),
          tone_of(word)};
}

/// Scenarios by strategies. Strategies are numbered: their names are too long for columns.
std::string matrix(const std::vector<Hazard>& hazards, const TextStyle& style) {
  std::map<std::pair<std::string, std::string>, const Hazard*> cells;
  for (const Hazard& hazard : hazards) cells[{hazard.scenario, hazard.strategy}] = &hazard;
  const std::vector<std::string> scenarios = scenarios_of(hazards),
                                 strategies = strategies_of(hazards);
  std::size_t names = 0;
  for (const std::string& scenario : scenarios) names = std::max(names, display_width(scenario));
  std::string out;
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    out += fmt::format("{:>4} {}\n", i + 1, printable(strategies[i]));
  }
  const std::size_t in_block =
      style.width ? (std::max(*style.width, names + kCellWidth) - names) / kCellWidth
                  : strategies.size();
  for (std::size_t from = 0; from < strategies.size(); from += in_block) {
    const std::size_t to = std::min(from + in_block, strategies.size());
    std::vector<Field<std::string>> fields{
        {{"scenario"}, [](const std::string& scenario) { return scenario; }}};
    for (std::size_t i = from; i < to; ++i) {
      const std::string number = padded(std::to_string(i + 1), kCellWidth - 2);
      fields.push_back({{number, "", number}, [&, i](const std::string& scenario) {
                          const auto found = cells.find({scenario, strategies[i]});
                          return found == cells.end() ? Cell("") : outcome_cell(*found->second);
                        }});
    }
    TextStyle unlimited = style;
    unlimited.width.reset();
    out += "\n" + to_text(table_of(fields, scenarios), {}, unlimited);
  }
  return out;
}

bool any(const std::vector<Hazard>& hazards, const std::function<bool(const Hazard&)>& is_so) {
  return std::any_of(hazards.begin(), hazards.end(), is_so);
}

/// The words that occur.
std::string legend(const std::vector<Hazard>& hazards, const TextStyle& style) {
  std::string out;
  for (const OutcomeWord& word : outcome_words()) {
    if (!any(hazards, [&](const Hazard& one) { return one.observed == word.outcome; })) continue;
    out += colored(padded(styled(word.shown, style), kCellWidth), word.tone, style) +
           fmt::format("{}: {}\n", word.outcome, word.meaning);
  }
  if (any(hazards, [](const Hazard& one) { return outcome_suffix(one) == "!"; })) {
    out += padded("!", kCellWidth) + "differs from what the strategy declares\n";
  }
  if (any(hazards, is_unstable)) out += padded("~", kCellWidth) + "plays ended differently\n";
  return out;
}

std::string reason_of(const Hazard& hazard) { return evidence_text(hazard, "reason"); }

/// The strategies that failed in one scenario with the same outcome for the same reason.
struct Failure {
  std::string scenario, outcome, reason;
  std::vector<std::string> strategies;
};

std::string outcome_in_full(const Hazard& hazard) {
  std::string outcome = hazard.observed;
  if (!hazard.agrees) outcome += fmt::format(" (declared: {})", hazard.expected);
  if (is_unstable(hazard)) {
    outcome += fmt::format(", unstable: {}", evidence_text(hazard, "outcomes"));
  }
  return outcome;
}

std::vector<Failure> failures_of(const std::vector<Hazard>& hazards) {
  std::vector<Failure> all;
  for (const Hazard& hazard : hazards) {
    const bool unplayed = hazard.observed == "not-played";
    if (hazard.agrees && gravity(hazard.observed) == 0 && !unplayed) continue;
    Failure one{hazard.scenario, outcome_in_full(hazard), reason_of(hazard), {hazard.strategy}};
    const auto same = std::find_if(all.begin(), all.end(), [&](const Failure& other) {
      return other.scenario == one.scenario && other.outcome == one.outcome &&
             other.reason == one.reason;
    });
    if (same == all.end()) {
      all.push_back(std::move(one));
    } else {
      same->strategies.push_back(hazard.strategy);
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> scenarios_of(const std::vector<Hazard>& hazards) {
  return in_order(hazards, &Hazard::scenario);
}

std::vector<std::string> strategies_of(const std::vector<Hazard>& hazards) {
  return in_order(hazards, &Hazard::strategy);
}

Table hazard_table(const std::vector<Hazard>& hazards) {
  static const std::vector<Field<Hazard>> fields{
      {{"scenario", "", "scenario"}, &Hazard::scenario},
      {{"strategy", "", "strategy"}, &Hazard::strategy},
      {{"expected", "", "declared", Unit::text, 2}, &Hazard::expected},
      {{"observed", "", "observed"}, &Hazard::observed},
      {{"agrees", "", "agrees", Unit::text, 1}, &Hazard::agrees},
      {{"reason", "", "reason", Unit::text, 3}, reason_of},
  };
  return table_of(fields, hazards);
}

std::string hazard_text(const std::vector<Hazard>& hazards, const TextStyle& style) {
  std::string out = matrix(hazards, style) + "\n" + legend(hazards, style) + "\n";
  TextStyle indented = style;
  if (style.width && *style.width > 2) indented.width = *style.width - 2;
  for (const Failure& one : failures_of(hazards)) {
    out += folded(
        fmt::format("{} / {}: {}", one.scenario, fmt::join(one.strategies, ", "), one.outcome),
        style);
    out += "\n  " + folded(one.reason, indented) + "\n";
  }
  return out;
}

std::string explain(const Hazard& hazard) {
  std::string out = fmt::format("{} / {}: {} ({} declared)\n", hazard.scenario, hazard.strategy,
                                hazard.observed, hazard.expected);
  std::size_t width = 0;
  for (const HazardEvent& event : hazard.timeline) {
    width = std::max(width, display_width(event.who));
  }
  for (const HazardEvent& event : hazard.timeline) {
    out += fmt::format("{:>9.3f} s  {}  {}\n", event.t, padded(event.who, width), event.what);
  }
  for (const auto& [name, value] : hazard.evidence) {
    out += fmt::format("{}: {}\n", name, value_text(value));
  }
  return printable_page(out, false);
}

}  // namespace lockbench::results

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "results/tables/hazards.h"
#include "results/tables/outcomes.h"

namespace lockbench::results {
namespace {

/// Columns that fit a page.
constexpr std::size_t kMostColumns = 8;

constexpr std::string_view kFine = "✓", kNone = "·", kUnplayed = "–";

/// Strategies with the same outcome in every scenario share a column.
struct Strategies {
  std::vector<std::string> strategies;
  std::vector<const Hazard*> cells;  ///< one for each scenario; null if not played
};

std::string text_of(const OutcomeWord& word, std::string_view suffix = {}) {
  if (word.tone == Tone::plain) return std::string(word.mark);
  if (word.tone == Tone::good) return fmt::format("{}{}", word.mark, suffix);
  return fmt::format("{} {}{}", word.mark, word.shown, suffix);
}

std::string text_of(const Hazard* cell) {
  if (cell == nullptr) return "";
  const OutcomeWord* const word = find_outcome(cell->observed);
  return word == nullptr ? "?" : text_of(*word, outcome_suffix(*cell));
}

/// The store, or the protocol: strategies of one family have the first word of their names in
/// common.
std::string family_of(const Strategies& column) {
  const std::string& name = column.strategies.front();
  return name.substr(0, name.find('-'));
}

bool alike(const Strategies& one, const Strategies& other) {
  return family_of(one) == family_of(other) &&
         std::equal(one.cells.begin(), one.cells.end(), other.cells.begin(), other.cells.end(),
                    [](const Hazard* a, const Hazard* b) { return text_of(a) == text_of(b); });
}

std::vector<Strategies> columns_of(const std::vector<Hazard>& hazards,
                                   const std::vector<std::string>& scenarios) {
  std::map<std::pair<std::string_view, std::string_view>, const Hazard*> cells;
  std::vector<Strategies> columns;
  for (const Hazard& hazard : hazards) cells[{hazard.scenario, hazard.strategy}] = &hazard;
  for (const std::string& strategy : strategies_of(hazards)) {
    Strategies column{.strategies = {strategy}};
    for (const std::string& scenario : scenarios) {
      const auto found = cells.find({scenario, strategy});
      column.cells.push_back(found == cells.end() ? nullptr : found->second);
    }
    const auto same = std::find_if(columns.begin(), columns.end(),
                                   [&](const Strategies& one) { return alike(one, column); });
    if (same == columns.end()) {
      columns.push_back(std::move(column));
    } else {
      same->strategies.push_back(strategy);
    }
  }
  return columns;
}

/// Whether no scenario that applies to it was played.
bool unplayed(const Strategies& column) {
  return std::all_of(column.cells.begin(), column.cells.end(),
                     [](const Hazard* cell) { return cell == nullptr || text_of(cell) == kNone; });
}

/// Splits the columns into tables that fit a page. A family is split only if it does not fit.
std::vector<std::vector<Strategies>> tables_of(const std::vector<Strategies>& columns) {
  std::vector<std::vector<Strategies>> tables;
  for (std::size_t from = 0; from < columns.size();) {
    const std::string family = family_of(columns[from]);
    const auto end =
        std::find_if(columns.begin() + static_cast<std::ptrdiff_t>(from), columns.end(),
                     [&](const Strategies& one) { return family_of(one) != family; });
    const auto size = static_cast<std::size_t>(end - columns.begin()) - from;
    if (tables.empty() || tables.back().size() + size > kMostColumns) tables.emplace_back();
    for (std::size_t i = from; i < from + size; ++i) {
      if (tables.back().size() == kMostColumns) tables.emplace_back();
      tables.back().push_back(columns[i]);
    }
    from += size;
  }
  return tables;
}

std::string names_of(const std::vector<Strategies>& columns, std::string_view separator) {
  std::vector<std::string> names;
  for (const Strategies& column : columns) {
    names.insert(names.end(), column.strategies.begin(), column.strategies.end());
  }
  return fmt::format("{}", fmt::join(names, separator));
}

/// A row for each scenario that harms one of the strategies; scenarios that harm none are named
/// below.
std::string table_of(const std::vector<Strategies>& columns,
                     const std::vector<std::string>& scenarios) {
  std::vector<std::string> head{"scenario"};
  std::string rule = "|---|", rows;
  for (const Strategies& column : columns) {
    head.push_back(fmt::format("{}", fmt::join(column.strategies, "<br>")));
    rule += ":---:|";
  }
  std::vector<std::string> harmless;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    bool fine = false, harms = false, unknown = false;
    std::vector<std::string> row{scenarios[i]};
    for (const Strategies& column : columns) {
      const std::string text = text_of(column.cells[i]);
      fine = fine || text == kFine;
      unknown = unknown || text.empty() || text == kUnplayed;
      harms = harms || !(text.empty() || text == kFine || text == kNone || text == kUnplayed);
      row.push_back(text);
    }
    if (harms || (fine && unknown)) rows += markdown_row(row);
    if (fine && !harms && !unknown) harmless.push_back(scenarios[i]);
  }
  std::string out = rows.empty() ? "" : fmt::format("{}{}\n{}\n", markdown_row(head), rule, rows);
  if (harmless.empty()) return out;
  return out + fmt::format("None of {} is harmed by {}.\n\n", names_of(columns, ", "),
                           fmt::join(harmless, ", "));
}

/// Which plays could not be played, and why.
std::string unplayed_plays(const std::vector<Hazard>& hazards) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> strategies;
  for (const Hazard& hazard : hazards) {
    if (hazard.observed != "not-played") continue;
    strategies[{hazard.scenario, evidence_text(hazard, "reason")}].push_back(hazard.strategy);
  }
  std::string out;
  for (const auto& [play, names] : strategies) {
    out += fmt::format("Not played: {} with {}: {}.\n\n", play.first, fmt::join(names, ", "),
                       play.second);
  }
  return out;
}

std::string legend_of(const std::vector<Hazard>& hazards) {
  std::vector<std::string> parts{fmt::format("{} safe, or the lock recovers without help", kFine)};
  for (const OutcomeWord& word : outcome_words()) {
    const bool occurs = std::any_of(hazards.begin(), hazards.end(), [&](const Hazard& cell) {
      return cell.observed == word.outcome;
    });
    if (!occurs || word.tone == Tone::good) continue;
    const std::string_view colon = word.tone == Tone::plain ? "" : ":";
    parts.push_back(fmt::format("{}{} {}", text_of(word), colon, word.meaning));
  }
  if (std::any_of(hazards.begin(), hazards.end(), is_unstable)) {
    parts.emplace_back("~ plays ended differently");
  }
  if (std::any_of(hazards.begin(), hazards.end(),
                  [](const Hazard& cell) { return outcome_suffix(cell) == "!"; })) {
    parts.emplace_back("! differs from what the strategy declares");
  }
  return fmt::format("{}\n", fmt::join(parts, "; "));
}

}  // namespace

std::string hazard_markdown(const std::vector<Hazard>& hazards) {
  const std::vector<std::string> scenarios = scenarios_of(hazards);
  std::vector<Strategies> columns = columns_of(hazards, scenarios);
  const auto played = std::stable_partition(
      columns.begin(), columns.end(), [](const Strategies& column) { return !unplayed(column); });
  const std::vector<Strategies> left_out(played, columns.end());
  columns.erase(played, columns.end());
  std::string out;
  for (const auto& table : tables_of(columns)) out += table_of(table, scenarios);
  if (!left_out.empty()) {
    out += fmt::format("None of these hazards applies to {}.\n\n", names_of(left_out, ", "));
  }
  return out + unplayed_plays(hazards) + legend_of(hazards);
}

}  // namespace lockbench::results

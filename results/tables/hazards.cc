#include "results/tables/hazards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "results/file/loads.h"

namespace lockbench::results {
namespace {

constexpr std::string_view kFine = "✓", kNone = "·", kUnplayed = "–";

using Names = std::vector<std::string>;

/// The names in the order of their first occurrence.
Names in_order(const std::vector<Hazard>& hazards, std::string Hazard::*name) {
  return keys_of(grouped(hazards, name));
}

/// How a cell shows an outcome and how a legend explains it.
struct OutcomeWord {
  std::string_view name, shown, meaning;
  Tone tone;              ///< plain: the play shows nothing about the lock
  int gravity;            ///< see gravity()
  std::string_view mark;  ///< in Markdown, which has no colors

  /// "✓", "✗ double": good and plain outcomes have only their mark.
  std::string text() const {
    const bool marked = tone == Tone::plain || tone == Tone::good;
    return marked ? std::string(mark) : fmt::format("{} {}", mark, shown);
  }
};

/// Good outcomes come first.
constexpr std::array kOutcomes{
    OutcomeWord{"safe", "safe", "the fault did no harm", Tone::good, 0, "✓"},
    OutcomeWord{"recovers", "back", "the lock recovered without help", Tone::good, 0, "✓"},
    OutcomeWord{"double-grant", "double", "two clients held the lock at the same time", Tone::bad,
                3, "✗"},
    OutcomeWord{"lost-update", "lost", "a stale write reached the protected counter", Tone::bad, 3,
                "✗"},
    OutcomeWord{"foreign-release", "freed", "a client released the lock of another", Tone::bad, 3,
                "✗"},
    OutcomeWord{"foreign-renewal", "renewed", "a client renewed the lock of another", Tone::bad, 3,
                "✗"},
    OutcomeWord{"stuck", "stuck", "the lock stays taken after it should be free", Tone::doubtful, 3,
                "■"},
    OutcomeWord{"self-deadlock", "self", "the holder waits for itself", Tone::doubtful, 2, "■"},
    OutcomeWord{"unavailable", "down", "no client can acquire the lock during the fault",
                Tone::doubtful, 2, "■"},
    OutcomeWord{"refused", "refused", "the strategy grants no lock rather than a doubtful one",
                Tone::doubtful, 1, "■"},
    OutcomeWord{"known-loss", "knew",
                "the lock ran out, but its holder knew before another client got it",
                Tone::doubtful, 1, "○"},
    OutcomeWord{"not-applicable", "·", "does not apply to the strategy", Tone::plain, 0, "·"},
    OutcomeWord{"not-played", "unplayed", "lockbench cannot cause this fault here", Tone::plain, 0,
                "–"},
};

/// Null for an unknown outcome.
const OutcomeWord* find_outcome(std::string_view name) {
  const auto* const found = std::ranges::find(kOutcomes, name, &OutcomeWord::name);
  return found == kOutcomes.end() ? nullptr : found;
}

std::string reason_of(const Hazard& hazard) { return text_in(hazard.evidence, "reason"); }

bool has_mark(const Hazard& hazard, const std::string& name) {
  const auto found = hazard.evidence.find(name);
  return found != hazard.evidence.end() && found->second == OptionValue(true);
}

/// Whether repeated plays ended differently.
bool is_unstable(const Hazard& hazard) { return has_mark(hazard, "unstable"); }

bool is_simulated(const Hazard& hazard) { return has_mark(hazard, "simulated"); }

bool is_marked_unlike_declared(const Hazard& hazard) {
  return !hazard.agrees && !is_unstable(hazard);
}

Cell cell_of(const Hazard& hazard) {
  const OutcomeWord* const outcome = find_outcome(hazard.observed);
  if (outcome == nullptr) return {"?", Tone::doubtful};
  std::string text = outcome->text();
  if (outcome->tone != Tone::plain) {
    if (is_unstable(hazard)) text += '~';
    if (is_marked_unlike_declared(hazard)) text += '!';
  }
  return {text, outcome->tone};
}

/// Strategies that share a column.
struct Strategies {
  Names names;
  std::vector<Cell> cells;  ///< one for each scenario; without text if the scenario was not played

  /// The store or the protocol: the first word of the strategies' names.
  std::string family() const { return names.front().substr(0, names.front().find('-')); }
  /// Whether no scenario that applies to them was played.
  bool unplayed() const {
    return std::ranges::all_of(
        cells, [](const Cell& cell) { return cell.text.empty() || cell.text == kNone; });
  }
};

std::vector<Strategies> columns_of(const std::vector<Hazard>& hazards, const Names& scenarios) {
  std::map<std::pair<std::string_view, std::string_view>, const Hazard*> played;
  for (const Hazard& hazard : hazards) played[{hazard.scenario, hazard.strategy}] = &hazard;
  std::vector<Strategies> columns;
  std::map<Names, std::size_t> alike;  ///< by family and outcomes
  for (const std::string& strategy : in_order(hazards, &Hazard::strategy)) {
    Strategies column{.names = {strategy}};
    Names texts{column.family()};
    for (const std::string& scenario : scenarios) {
      const auto found = played.find({scenario, strategy});
      column.cells.push_back(found == played.end() ? Cell("") : cell_of(*found->second));
      texts.push_back(column.cells.back().text);
    }
    const auto [same, fresh] = alike.try_emplace(std::move(texts), columns.size());
    if (fresh) {
      columns.push_back(std::move(column));
    } else {
      columns[same->second].names.push_back(strategy);
    }
  }
  return columns;
}

/// Splits the columns into tables. A family is split only if it does not fit into one.
std::vector<std::vector<Strategies>> tables_of(const std::vector<Strategies>& columns,
                                               std::size_t most) {
  std::vector<std::vector<Strategies>> tables;
  for (auto from = columns.begin(); from != columns.end();) {
    const std::string family = from->family();
    const auto end = std::find_if(from, columns.end(),
                                  [&](const Strategies& one) { return one.family() != family; });
    const auto size = static_cast<std::size_t>(end - from);
    if (tables.empty() || tables.back().size() + size > most) tables.emplace_back();
    for (; from != end; ++from) {
      if (tables.back().size() == most) tables.emplace_back();
      tables.back().push_back(*from);
    }
  }
  return tables;
}

std::string names_of(const std::vector<Strategies>& columns) {
  Names names;
  for (const Strategies& column : columns) {
    names.insert(names.end(), column.names.begin(), column.names.end());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// A row for each scenario that harms one of the strategies; the others are named below.
Block block_of(const std::vector<Strategies>& columns, const Names& scenarios,
               const std::function<std::string(const Strategies&)>& title_of) {
  std::vector<Field<std::size_t>> fields{
      {{"scenario", "", "scenario"}, [&](std::size_t i) { return scenarios[i]; }}};
  for (const Strategies& column : columns) {
    const std::string title = title_of(column);
    fields.push_back({{title, "", title}, [&](std::size_t i) { return column.cells[i]; }});
  }
  std::vector<std::size_t> rows;
  Names harmless;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    bool fine = false, harms = false, unknown = false;
    for (const Strategies& column : columns) {
      const std::string& text = column.cells[i].text;
      fine = fine || text == kFine;
      unknown = unknown || text.empty() || text == kUnplayed;
      harms = harms || !(text.empty() || text == kFine || text == kNone || text == kUnplayed);
    }
    if (harms || (fine && unknown)) {
      rows.push_back(i);
    } else if (fine) {
      harmless.push_back(scenarios[i]);
    }
  }
  Block block;
  if (!rows.empty()) block.table = table_of(fields, rows);
  if (!harmless.empty()) {
    block.lines.emplace_back(Tone::good, fmt::format("None of {} is harmed by {}.",
                                                     names_of(columns), fmt::join(harmless, ", ")));
  }
  return block;
}

std::vector<Sentence> legend_of(const std::vector<Hazard>& hazards) {
  std::vector<Sentence> legend{
      {Tone::good, fmt::format("{} safe, or the lock recovers without help", kFine)}};
  for (const OutcomeWord& outcome : kOutcomes) {
    const auto occurs = [&](const Hazard& hazard) { return hazard.observed == outcome.name; };
    if (outcome.tone == Tone::good || std::ranges::none_of(hazards, occurs)) continue;
    const std::string_view colon = outcome.tone == Tone::plain ? "" : ":";
    legend.emplace_back(outcome.tone,
                        fmt::format("{}{} {}", outcome.text(), colon, outcome.meaning));
  }
  if (std::ranges::any_of(hazards, is_simulated)) {
    legend.emplace_back(Tone::doubtful, "played on simulated machines");
  }
  if (std::ranges::any_of(hazards, is_unstable)) {
    legend.emplace_back(Tone::doubtful, "~ plays ended differently");
  }
  if (std::ranges::any_of(hazards, is_marked_unlike_declared)) {
    legend.emplace_back(Tone::doubtful, "! differs from what the strategy declares");
  }
  return legend;
}

std::string outcome_in_full(const Hazard& hazard) {
  std::string outcome = hazard.observed;
  if (!hazard.agrees) outcome += fmt::format(" (declared: {})", hazard.expected);
  if (is_unstable(hazard)) {
    outcome += fmt::format(", unstable: {}", text_in(hazard.evidence, "outcomes"));
  }
  return outcome;
}

}  // namespace

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

std::vector<Block> hazard_blocks(const std::vector<Hazard>& hazards, const MatrixStyle& style) {
  const Names scenarios = in_order(hazards, &Hazard::scenario);
  std::vector<Strategies> columns = columns_of(hazards, scenarios);
  const auto played = std::stable_partition(
      columns.begin(), columns.end(), [](const Strategies& column) { return !column.unplayed(); });
  const std::vector<Strategies> left_out(played, columns.end());
  columns.erase(played, columns.end());
  std::vector<Block> blocks;
  std::map<std::string_view, std::size_t> numbers;  ///< by the first strategy of a column
  if (style.numbered) {
    Block& list = blocks.emplace_back();
    for (const Strategies& column : columns) {
      numbers[column.names.front()] = numbers.size() + 1;
      list.lines.emplace_back(Tone::plain,
                              fmt::format("{} {}", numbers.size(), fmt::join(column.names, ", ")));
    }
  }
  const auto title_of = [&](const Strategies& column) {
    return style.numbered ? std::to_string(numbers.at(column.names.front()))
                          : fmt::format("{}", fmt::join(column.names, "\n"));
  };
  for (const auto& table : tables_of(columns, std::max<std::size_t>(style.columns, 1))) {
    blocks.push_back(block_of(table, scenarios, title_of));
  }
  Block& last = blocks.emplace_back();
  if (!left_out.empty()) {
    last.lines.emplace_back(
        Tone::plain, fmt::format("None of these hazards applies to {}.", names_of(left_out)));
  }
  std::map<std::pair<std::string, std::string>, Names> unplayed;
  for (const Hazard& hazard : hazards) {
    if (hazard.observed != "not-played") continue;
    unplayed[{hazard.scenario, reason_of(hazard)}].push_back(hazard.strategy);
  }
  for (const auto& [play, names] : unplayed) {
    last.lines.emplace_back(Tone::doubtful, fmt::format("Not played: {} with {}: {}.", play.first,
                                                        fmt::join(names, ", "), play.second));
  }
  for (Sentence& word : legend_of(hazards)) last.lines.push_back(std::move(word));
  return blocks;
}

std::vector<Sentence> hazard_failures(const std::vector<Hazard>& hazards) {
  const auto play = [](const Hazard& hazard) {
    return std::array{hazard.scenario, outcome_in_full(hazard), reason_of(hazard)};
  };
  std::vector<Sentence> lines;
  for (const auto& [failure, plays] : grouped(hazards, play)) {
    const auto& [scenario, outcome, reason] = failure;
    Names names;
    for (const Hazard* one : plays) {
      if (!one->agrees || gravity(one->observed) > 0) names.push_back(one->strategy);
    }
    if (names.empty()) continue;
    lines.emplace_back(Tone::bad, fmt::format("{} / {}: {}{}{}", scenario, fmt::join(names, ", "),
                                              outcome, reason.empty() ? "" : ": ", reason));
  }
  return lines;
}

std::string timeline_text(const std::vector<HazardEvent>& events) {
  std::string out;
  std::size_t width = 0;
  for (const HazardEvent& event : events) width = std::max(width, display_width(event.who));
  for (const HazardEvent& event : events) {
    const std::string gap(width - display_width(event.who), ' ');
    out += fmt::format("{:>9.3f} s  {}{}  {}\n", event.t, event.who, gap, event.what);
  }
  return out;
}

std::string explain(const Hazard& hazard) {
  std::string out = fmt::format("{} / {}: {} ({} declared)\n", hazard.scenario, hazard.strategy,
                                hazard.observed, hazard.expected);
  out += timeline_text(hazard.timeline);
  for (const auto& [name, value] : hazard.evidence) {
    out += fmt::format("{}: {}\n", name, value_text(value));
  }
  return printable_page(out, false);
}

int gravity(std::string_view outcome) {
  const OutcomeWord* const known = find_outcome(outcome);
  return known == nullptr ? 3 : known->gravity;
}

bool does_harm(std::string_view outcome) { return gravity(outcome) > gravity("refused"); }

}  // namespace lockbench::results

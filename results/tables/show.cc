#include "results/tables/show.h"

#include <fmt/format.h>

#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/tables/experiments.h"
#include "results/tables/hazards.h"
#include "results/tables/loads.h"
#include "results/tables/observed.h"
#include "results/tables/ranks.h"
#include "results/tables/runs.h"

namespace lockbench::results {
namespace {

enum class Kind { runs, hazards, points, capacity, observed };

Kind kind_of(const Result& result) {
  if (!result.runs.empty()) return Kind::runs;
  if (result.hazards) return Kind::hazards;
  if (result.experiment) return Kind::points;
  if (result.observed) return Kind::observed;
  return result.capacity ? Kind::capacity : Kind::runs;
}

/// One row for each thing that was measured: what CSV shows.
Table complete_table(const Result& result, const KnownFlaws& flaws) {
  switch (kind_of(result)) {
    case Kind::hazards:
      return hazard_table(*result.hazards);
    case Kind::points:
      return point_table(*result.experiment);
    case Kind::capacity:
      return step_table(*result.capacity);
    case Kind::observed:
      return observed_table(result);
    case Kind::runs:
      break;
  }
  return table_of_each_run(result, flaws);
}

/// What people see.
Table main_table(const Result& result, const KnownFlaws& flaws) {
  const Kind kind = kind_of(result);
  if (kind == Kind::points) return point_table(*result.experiment);
  if (kind == Kind::observed) return observed_table(result);
  return kind == Kind::capacity ? capacity_table(*result.capacity) : run_table(result, flaws);
}

std::vector<std::string> lines_below(const Result& result) {
  std::vector<std::string> lines = notes(result);
  if (kind_of(result) == Kind::points) {
    const std::vector<std::string> found = findings(*result.experiment);
    lines.insert(lines.begin(), found.begin(), found.end());
  }
  if (result.observed) {
    const std::vector<std::string> seen = observed_lines(result);
    lines.insert(lines.begin(), seen.begin(), seen.end());
  }
  return lines;
}

/// What the figures say, under the strategy's name.
std::string details_of(const Capacity& capacity, const Look& look) {
  const bool markdown = look.format == Format::markdown;
  std::string text = fmt::format("\n{}{}\n", markdown ? "## " : "", capacity.strategy);
  return text + written({}, findings(capacity), look);
}

std::string hazards_of(const Result& result, const Look& look) {
  const bool markdown = look.format == Format::markdown;
  std::string text =
      markdown ? hazard_markdown(*result.hazards) : hazard_text(*result.hazards, look.style);
  if (result.interrupted) text += "\n" + written({}, {kInterrupted}, look);
  return text;
}

/// Of a single run: with many, those that stand out are among the notes.
std::string ranks_of(const Result& result, const Look& look) {
  if (result.runs.size() != 1 || result.runs.front().ranks.empty()) return {};
  return "\n" + written(shown(rank_table(result)), {}, look);
}

/// A table for each load, and what follows from them.
std::string loads_of(const Result& result, const KnownFlaws& flaws, const Look& look) {
  const bool markdown = look.format == Format::markdown;
  std::string text;
  for (const TitledTable& one : load_tables(result, flaws)) {
    text += fmt::format("{}{}\n\n", markdown ? "## " : "", one.title);
    text += written(one.table, {}, look) + "\n";
  }
  text += written({}, conclusions(result, flaws), look);
  const std::vector<std::string> below = notes(result);
  if (!below.empty()) text += "\n" + written({}, below, look);
  return text;
}

Table csv_columns(const Table& table) {
  std::vector<std::size_t> places;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].in_csv) places.push_back(c);
  }
  return with_columns(table, places);
}

}  // namespace

std::string written(const Table& table, const std::vector<std::string>& lines, const Look& look) {
  return look.format == Format::markdown ? to_markdown(table, lines)
                                         : to_text(table, lines, look.style);
}

tl::expected<std::string, std::string> render(const Table& table,
                                              const std::vector<std::string>& notes,
                                              const Look& look) {
  Table picked;
  if (!look.columns.empty()) {
    auto asked = chosen(table, look.columns);
    if (!asked) return tl::unexpected(asked.error());
    picked = *std::move(asked);
  } else {
    picked = look.format == Format::csv ? csv_columns(table) : shown(table);
  }
  if (look.format == Format::csv) return to_csv(picked);
  return written(picked, notes, look);
}

tl::expected<std::string, std::string> render(const Result& result, const KnownFlaws& flaws,
                                              const Look& look) {
  if (look.format == Format::json) {
    if (look.columns.empty()) return to_json(result);
    return tl::unexpected(std::string("JSON has no columns to choose: use --format csv"));
  }
  const Kind kind = kind_of(result);
  // A matrix has no columns to choose from: its cells as a list have.
  if (look.format == Format::csv || (kind == Kind::hazards && !look.columns.empty())) {
    return render(complete_table(result, flaws), {}, look);
  }
  if (kind == Kind::hazards) return hazards_of(result, look);
  if (kind == Kind::runs && look.columns.empty() && has_several_loads(result)) {
    return loads_of(result, flaws, look);
  }
  const Table table = main_table(result, flaws);
  auto text = render(table, lines_below(result), look);
  if (text && table.rows.empty()) {
    const std::string_view what = kind == Kind::runs       ? "runs"
                                  : kind == Kind::observed ? "locks were seen"
                                                           : "points";
    return fmt::format("no {}\n{}", what,
                       *render(Table(), lines_below(result), {look.format, look.style}));
  }
  if (text && kind == Kind::runs && look.columns.empty()) *text += ranks_of(result, look);
  if (!text || kind != Kind::capacity) return text;
  for (const Capacity& capacity : *result.capacity) *text += details_of(capacity, look);
  return text;
}

}  // namespace lockbench::results

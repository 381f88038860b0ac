#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/stats/figures.h"
#include "results/stats/statistics.h"
#include "results/tables/columns.h"
#include "results/tables/text.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

std::vector<double> values(const Row& row, const Column& column, std::string_view path) {
  std::vector<double> found;
  for (const Run* run : row.runs) {
    if (column.needs_audit && run->audit.increments == 0) {
      continue;
    }
    if (const auto value = figure(*run, path)) {
      found.push_back(*value);
    }
  }
  return found;
}

std::optional<double> merged(const Row& row, const Column& column, std::string_view path) {
  const std::vector<double> found = values(row, column, path);
  if (found.empty() || column.merge == Merge::median) {
    return median(found);
  }
  if (column.merge == Merge::max) {
    return *std::max_element(found.begin(), found.end());
  }
  return *mean(found) * static_cast<double>(found.size());
}

std::string human(double value, Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return human_seconds(value);
    case Unit::count:
      return human_count(value);
    case Unit::number:
    case Unit::text:
      return human_number(value);
  }
  return "";
}

/// " ±4%": the repetition farthest from the median; nothing for a single one.
std::string spread(const Row& row, const Column& column, double center) {
  if (row.runs.size() < 2 || center == 0) {
    return "";
  }
  double farthest = 0;
  for (const double value : values(row, column, column.figure)) {
    farthest = std::max(farthest, std::abs(value - center));
  }
  return fmt::format(" ±{:.0f}%", 100 * farthest / std::abs(center));
}

Cell text_cell(const Column& column, const Row& row) {
  return {.text = printable(column.text(row)),
          .tone = column.tone == nullptr ? Tone::plain : column.tone(row)};
}

Cell make_cell(const Column& column, const Row& row) {
  if (column.text != nullptr) {
    return text_cell(column, row);
  }
  const auto value = merged(row, column);
  if (!value) {
    return {"–"};
  }
  Cell cell{human(*value, column.unit)};
  double most = *value;
  if (!column.figure_max.empty()) {
    most = std::max(most, merged(row, column, column.figure_max).value_or(most));
  }
  if (most > *value) {
    cell.text += "–" + human(most, column.unit);
  }
  cell.counted = column.unit == Unit::count && most > 0;
  if (column.alarming && most > 0) {
    cell.tone = *value > 0 ? Tone::bad : Tone::doubtful;
  }
  if (column.with_spread) {
    cell.text += spread(row, column, *value);
  }
  return cell;
}

std::vector<Row> group_by_strategy(const Result& result, const KnownFlaws& flaws) {
  std::vector<Row> rows;
  for (const Run& run : result.runs) {
    const auto same = std::find_if(rows.begin(), rows.end(), [&run](const Row& row) {
      return row.runs.front()->strategy == run.strategy;
    });
    if (same != rows.end()) {
      same->runs.push_back(&run);
      continue;
    }
    const auto flaw = flaws.find(run.strategy);
    rows.push_back({{&run}, flaw == flaws.end() ? "" : flaw->second});
  }
  return rows;
}

bool says_something(const Column& column, const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&column](const Row& row) {
    if (column.text != nullptr) {
      return !column.text(row).empty();
    }
    return merged(row, column).value_or(0) > 0;
  });
}

}  // namespace

std::string title(const Column& column) {
  std::string text(column.group);
  if (text.ends_with('-')) {
    text.pop_back();
  } else if (!text.empty() && !text.ends_with('/')) {
    text += ' ';
  }
  return text.append(column.name);
}

std::optional<double> merged(const Row& row, const Column& column) {
  return merged(row, column, column.figure);
}

Sheet make_sheet(const Result& result, const KnownFlaws& flaws) {
  const std::vector<Row> rows = group_by_strategy(result, flaws);
  Sheet sheet;
  for (const Column& column : all_columns()) {
    if (column.show == Show::always ||
        (column.show == Show::where_any && says_something(column, rows))) {
      sheet.columns.push_back(&column);
    }
  }
  for (const Row& row : rows) {
    auto& cells = sheet.rows.emplace_back();
    for (const Column* column : sheet.columns) {
      cells.push_back(make_cell(*column, row));
    }
  }
  return sheet;
}

}  // namespace lockbench::results

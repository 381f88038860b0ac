#include "results/tables/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "results/tables/text.h"

namespace lockbench::results {
namespace {

struct HumanText {
  Unit unit;

  std::string operator()(std::monostate) const { return "–"; }
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(double value) const { return human(value, unit); }
  std::string operator()(const std::string& value) const { return value; }
};

bool says_something(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell.value)) return *number > 0;
  const auto* text = std::get_if<std::string>(&cell.value);
  return text == nullptr ? std::holds_alternative<bool>(cell.value) : !text->empty();
}

bool is_shown(const Table& table, std::size_t place) {
  const Show show = table.columns[place].show;
  return show == Show::always ||
         (show == Show::if_any &&
          std::any_of(table.rows.begin(), table.rows.end(),
                      [place](const auto& row) { return says_something(row[place]); }));
}

std::vector<std::size_t> all_places(const Table& table) {
  std::vector<std::size_t> places(table.columns.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

Table never_left_out(Table table) {
  for (Column& column : table.columns) column.rank = 0;
  return table;
}

}  // namespace

Cell finished(const Column& column, Cell cell) {
  if (cell.text.empty()) {
    cell.text = (cell.at_least ? "≥ " : "") + std::visit(HumanText{column.unit}, cell.value);
  }
  cell.text = printable(cell.text);
  return cell;
}

std::string title(const Column& column) {
  std::string text = column.group;
  if (text.ends_with('-')) {
    text.pop_back();
  } else if (!text.empty() && !text.ends_with('/')) {
    text += ' ';
  }
  return text + column.name;
}

Table with_columns(const Table& table, const std::vector<std::size_t>& places) {
  Table out;
  for (const std::size_t place : places) out.columns.push_back(table.columns[place]);
  for (const auto& row : table.rows) {
    auto& cells = out.rows.emplace_back();
    for (const std::size_t place : places) cells.push_back(row[place]);
  }
  return out;
}

Table shown(const Table& table) {
  std::vector<std::size_t> places = all_places(table);
  std::erase_if(places, [&](std::size_t place) { return !is_shown(table, place); });
  return with_columns(table, places);
}

tl::expected<Table, std::string> chosen(const Table& table, const std::vector<std::string>& keys) {
  std::vector<std::size_t> places;
  for (const std::string& key : keys) {
    if (key == "all") return never_left_out(table);
    const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                    [&](const Column& column) { return column.key == key; });
    if (found == table.columns.end()) {
      std::vector<std::string_view> known;
      for (const Column& column : table.columns) known.emplace_back(column.key);
      return tl::unexpected(fmt::format("there is no column \"{}\"; there are all, {}",
                                        printable(key), fmt::join(known, ", ")));
    }
    places.push_back(static_cast<std::size_t>(found - table.columns.begin()));
  }
  return never_left_out(with_columns(table, places));
}

}  // namespace lockbench::results

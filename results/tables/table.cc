#include "results/tables/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

/// The columns at these places, in this order.
Table with_columns(const Table& table, const std::vector<std::size_t>& places) {
  const auto those = [&](const auto& all) {
    return each_of(places, [&](std::size_t place) { return all[place]; });
  };
  return {those(table.columns), each_of(table.rows, those)};
}

template <class Wanted>
Table with_columns_that(const Table& table, const Wanted& are_wanted) {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < table.columns.size(); ++place) {
    if (are_wanted(place)) places.push_back(place);
  }
  return with_columns(table, places);
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

Table shown(const Table& table) {
  return with_columns_that(table, [&](std::size_t place) {
    const Show show = table.columns[place].show;
    return show == Show::always ||
           (show == Show::if_any && std::ranges::any_of(table.rows, [place](const auto& row) {
              return says_something(row[place]);
            }));
  });
}

Table csv_columns(const Table& table) {
  return with_columns_that(table, [&](std::size_t place) { return table.columns[place].in_csv; });
}

tl::expected<Table, std::string> chosen(const Table& table, const std::vector<std::string>& keys) {
  Table found = table;
  if (std::ranges::find(keys, "all") == keys.end()) {
    std::vector<std::size_t> places;
    for (const std::string& key : keys) {
      const auto same = std::ranges::find(table.columns, key, &Column::key);
      if (same == table.columns.end()) {
        return tl::unexpected(fmt::format("there is no column \"{}\"; use all, or some of {}",
                                          printable(key),
                                          fmt::join(each_of(table.columns, &Column::key), ", ")));
      }
      places.push_back(static_cast<std::size_t>(same - table.columns.begin()));
    }
    found = with_columns(table, places);
  }
  for (Column& column : found.columns) column.rank = 0;  // none is left out for lack of room
  return found;
}

}  // namespace lockbench::results

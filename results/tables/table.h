#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <variant>
#include <vector>

#include "results/tables/text.h"

namespace lockbench::results {

enum class Tone { plain, good, bad, doubtful };

/// When a column is shown without being asked for.
enum class Show {
  always,
  if_any,    ///< if some row has a text, or a number above 0
  if_asked,  ///< only in CSV, or with --columns
};

struct Column {
  std::string key;              ///< its name in CSV and for --columns: "acquire_p99_seconds"
  std::string group{}, name{};  ///< the two lines of its title: "acquire", "p99"
  Unit unit = Unit::text;
  int rank = 0;  ///< for lack of room the highest rank is left out first, rank 0 never
  Show show = Show::always;
  bool in_csv = true;
};

/// Monostate if there is nothing to measure.
using Value = std::variant<std::monostate, bool, double, std::string>;

struct Cell {
  Value value{};       ///< in base units, for CSV
  std::string text{};  ///< in human units, one line; table_of() derives it from the value if empty
  Tone tone = Tone::plain;
  bool at_least = false;  ///< the value is a lower bound

  Cell() = default;
  /// From a number, a bool, a text, or an optional of these. A number that is not finite has no
  /// value.
  template <class T>
  Cell(const T& given, Tone its_tone = Tone::plain, std::string its_text = "")
      : value(value_of(given)), text(std::move(its_text)), tone(its_tone) {
    if (const auto* same = std::get_if<std::string>(&value); same != nullptr && text.empty()) {
      text = *same;
    }
  }

 private:
  template <class T>
  static Value value_of(const std::optional<T>& given) {
    return given ? value_of(*given) : Value();
  }
  template <class T>
  static Value value_of(const T& given) {
    if constexpr (std::is_same_v<T, bool>) {
      return given;
    } else if constexpr (std::is_arithmetic_v<T>) {
      const auto number = static_cast<double>(given);
      return std::isfinite(number) ? Value(number) : Value();
    } else {
      return std::string(given);
    }
  }
};

/// A table for every output format: rows[r][c] belongs to columns[c].
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

/// One sentence, and whether it is good news.
struct Sentence {
  Tone tone = Tone::plain;
  std::string text;

  Sentence(std::string said) : text(std::move(said)) {}
  Sentence(Tone its_tone, std::string said) : tone(its_tone), text(std::move(said)) {}
};

/// A part of the output; each member may be empty.
struct Block {
  std::string title{};
  Table table{};
  std::vector<Sentence> lines{};
};

/// A column, and the function or pointer to a member that fills it from a row of type `Row`.
template <class Row>
struct Field {
  Column column;
  std::function<Cell(const Row&)> cell;
};

/// The cell with its text.
Cell finished(const Column& column, Cell cell);

template <class Row>
Table table_of(const std::vector<Field<Row>>& fields, const std::vector<Row>& rows) {
  Table table;
  for (const Field<Row>& field : fields) table.columns.push_back(field.column);
  for (const Row& row : rows) {
    auto& cells = table.rows.emplace_back();
    for (const Field<Row>& field : fields) {
      cells.push_back(finished(field.column, field.cell(row)));
    }
  }
  return table;
}

/// In one line: "acquire p99"; "fair-", "ness" is "fairness".
std::string title(const Column& column);

/// The columns that people see unless they ask for others.
Table shown(const Table& table);
/// The columns of CSV unless others are asked for.
Table csv_columns(const Table& table);
/// The columns of these keys in this order, however wide; "all" stands for every column. The error
/// names the known keys.
tl::expected<Table, std::string> chosen(const Table& table, const std::vector<std::string>& keys);

}  // namespace lockbench::results

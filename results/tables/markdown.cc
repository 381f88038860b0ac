#include <fmt/format.h>
#include <fmt/ranges.h>

#include "results/tables/formats.h"

namespace lockbench::results {

std::string markdown_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\|`*_<>[]").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string to_markdown(const Table& table, const std::vector<std::string>& notes) {
  std::vector<std::string> titles;
  std::string rule = "|";
  for (const Column& column : table.columns) {
    titles.push_back(markdown_text(title(column)));
    rule += column.unit == Unit::text ? "---|" : "---:|";
  }
  std::string out = titles.empty() ? "" : markdown_row(titles) + rule + "\n";
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    cells.reserve(row.size());
    for (const Cell& cell : row) cells.push_back(markdown_text(cell.text));
    out += markdown_row(cells);
  }
  out += notes.empty() || out.empty() ? "" : "\n";
  for (const std::string& note : notes) out += fmt::format("- {}\n", markdown_text(note));
  return out;
}

}  // namespace lockbench::results

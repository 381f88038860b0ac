#include "results/tables/markdown.h"

#include <fmt/format.h>

namespace lockbench::results {
namespace {

std::string table(const Sheet& sheet) {
  std::string titles = "|";
  std::string rule = "|";
  for (const Column* column : sheet.columns) {
    titles += fmt::format(" {} |", title(*column));
    rule += column->unit == Unit::text ? "---|" : "---:|";
  }
  std::string out = titles + "\n" + rule + "\n";
  for (const auto& row : sheet.rows) {
    out += "|";
    for (const Cell& cell : row) {
      out += fmt::format(" {} |", markdown_text(cell.text));
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::string markdown_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\|`*_<>[]").find(c) != std::string_view::npos) {
      out += '\\';
    }
    out += c;
  }
  return out;
}

std::string to_markdown(const Result& result, const KnownFlaws& flaws) {
  std::string out = result.runs.empty() ? "no runs\n" : table(make_sheet(result, flaws));
  const std::vector<std::string> lines = notes(result);
  out += lines.empty() ? "" : "\n";
  for (const std::string& line : lines) {
    out += fmt::format("- {}\n", markdown_text(line));
  }
  return out;
}

}  // namespace lockbench::results

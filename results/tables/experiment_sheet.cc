#include "results/tables/experiment_sheet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "results/tables/text.h"

namespace lockbench::results {
namespace {

std::string padded(std::string_view text, std::size_t width, bool left) {
  const std::string padding(width - display_width(text), ' ');
  return left ? std::string(text) + padding : padding + std::string(text);
}

}  // namespace

TextSheet sheet_of(const Experiment& experiment) {
  return std::visit([](const auto& points) { return sheet_of(points); }, experiment.points);
}

TextSheet list_of(const Experiment& experiment) {
  return std::visit([](const auto& points) { return list_of(points); }, experiment.points);
}

std::vector<std::string> readings(const Experiment& experiment) {
  return std::visit([](const auto& points) { return readings(points); }, experiment.points);
}

std::vector<std::string> breaches(const Experiment& experiment) {
  const auto* quorum = std::get_if<std::vector<QuorumPoint>>(&experiment.points);
  return quorum == nullptr ? std::vector<std::string>() : breaches(*quorum);
}

std::string to_table(const TextSheet& sheet) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < sheet.titles.size(); ++c) {
    std::size_t width = display_width(sheet.titles[c]);
    for (const auto& row : sheet.rows) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  std::string out;
  const auto add = [&](const std::vector<std::string>& row) {
    std::vector<std::string> cells;
    for (std::size_t c = 0; c < row.size(); ++c) cells.push_back(padded(row[c], widths[c], c == 0));
    out += fmt::format("{}\n", fmt::join(cells, "  "));
  };
  add(sheet.titles);
  for (const auto& row : sheet.rows) add(row);
  return out;
}

std::string to_markdown(const TextSheet& sheet) {
  std::string out = fmt::format("| {} |\n|---|", fmt::join(sheet.titles, " | "));
  for (std::size_t c = 1; c < sheet.titles.size(); ++c) out += "---:|";
  out += "\n";
  for (const auto& row : sheet.rows) out += fmt::format("| {} |\n", fmt::join(row, " | "));
  return out;
}

std::string to_csv(const TextSheet& sheet) {
  std::string out = fmt::format("{}\n", fmt::join(sheet.titles, ","));
  for (const auto& row : sheet.rows) out += fmt::format("{}\n", fmt::join(row, ","));
  return out;
}

}  // namespace lockbench::results

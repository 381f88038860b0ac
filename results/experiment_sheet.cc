#include "results/experiment_sheet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "results/text.h"
#include "results/units.h"

namespace lockbench::results {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string where_any(const Distribution& distribution, double seconds) {
  return distribution.count > 0 ? human_seconds(seconds) : "–";
}

std::string padded(std::string_view text, std::size_t width, bool left) {
  const std::string padding(width - display_width(text), ' ');
  return left ? std::string(text) + padding : padding + std::string(text);
}

const RenewalPoint* largest(const Experiment& experiment, std::string_view mode) {
  const RenewalPoint* found = nullptr;
  for (const RenewalPoint& point : experiment.points) {
    if (point.mode == mode && (found == nullptr || point.held > found->held)) found = &point;
  }
  return found;
}

std::string reading(const RenewalPoint& point) {
  return fmt::format(
      "{} locks renewed {}: {} of the other clients' throughput, {} thread{}, smallest margin {}, "
      "{} lost",
      human_count(static_cast<double>(point.held)),
      point.mode == "batched" ? "in batches" : "by a thread each", percent(point.overhead),
      human_count(static_cast<double>(point.threads)), point.threads == 1 ? "" : "s",
      where_any(point.margin, point.margin.min), human_count(static_cast<double>(point.lost)));
}

}  // namespace

TextSheet sheet_of(const Experiment& experiment) {
  TextSheet sheet;
  sheet.titles = {"held",       "renewed by", "threads",    "renewals/s", "commands/s",
                  "server CPU", "sections/s", "baseline",   "overhead",   "slip p50",
                  "slip p99",   "margin min", "margin p50", "failures",   "lost"};
  for (const RenewalPoint& point : experiment.points) {
    const auto count = [](std::uint64_t number) {
      return human_count(static_cast<double>(number));
    };
    sheet.rows.push_back(
        {count(point.held), point.mode, count(point.threads),
         human_number(point.renewals_per_second), human_number(point.commands_per_second),
         percent(point.server_cpu_share), human_number(point.sections_per_second),
         human_number(point.baseline_sections_per_second), percent(point.overhead),
         where_any(point.slip, point.slip.p50), where_any(point.slip, point.slip.p99),
         where_any(point.margin, point.margin.min), where_any(point.margin, point.margin.p50),
         count(point.failures), count(point.lost)});
  }
  return sheet;
}

std::vector<std::string> readings(const Experiment& experiment) {
  std::vector<std::string> lines;
  for (const char* mode : {"batched", "thread-per-lock"}) {
    if (const RenewalPoint* point = largest(experiment, mode)) lines.push_back(reading(*point));
  }
  return lines;
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

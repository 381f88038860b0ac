#include <fmt/format.h>

#include <algorithm>

#include "results/tables/experiment_sheet.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string where_any(const Distribution& distribution, double seconds) {
  return distribution.count > 0 ? human_seconds(seconds) : "–";
}

const RenewalPoint* largest(const std::vector<RenewalPoint>& points, std::string_view mode) {
  const RenewalPoint* found = nullptr;
  for (const RenewalPoint& point : points) {
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

TextSheet sheet_of(const std::vector<RenewalPoint>& points) {
  TextSheet sheet;
  sheet.titles = {"held",       "renewed by", "threads",    "renewals/s", "commands/s",
                  "server CPU", "sections/s", "baseline",   "overhead",   "slip p50",
                  "slip p99",   "margin min", "margin p50", "failures",   "lost"};
  for (const RenewalPoint& point : points) {
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

std::vector<std::string> readings(const std::vector<RenewalPoint>& points) {
  std::vector<std::string> lines;
  for (const char* mode : {"batched", "thread-per-lock"}) {
    if (const RenewalPoint* point = largest(points, mode)) lines.push_back(reading(*point));
  }
  return lines;
}

}  // namespace lockbench::results

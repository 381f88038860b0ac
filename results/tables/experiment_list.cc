#include <fmt/format.h>

#include <cmath>

#include "results/file/known.h"
#include "results/tables/csv.h"
#include "results/tables/experiment_sheet.h"

namespace lockbench::results {
namespace {

/// Nothing for what could not be measured.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

std::string where_any(const Distribution& distribution, double seconds) {
  return distribution.count == 0 ? "" : number(seconds);
}

}  // namespace

TextSheet list_of(const std::vector<RenewalPoint>& points) {
  TextSheet sheet{.titles = {"strategy", "held", "mode", "threads", "server_cpu_share",
                             "renewals_per_second", "commands_per_second", "sections_per_second",
                             "baseline_sections_per_second", "overhead", "failures", "lost",
                             "margin_min_seconds", "margin_p50_seconds", "slip_p50_seconds",
                             "slip_p99_seconds"}};
  for (const RenewalPoint& point : points) {
    sheet.rows.push_back(
        {csv_field(point.strategy), std::to_string(point.held), csv_field(point.mode),
         std::to_string(point.threads), number(point.server_cpu_share),
         number(point.renewals_per_second), number(point.commands_per_second),
         number(point.sections_per_second), number(point.baseline_sections_per_second),
         number(point.overhead), std::to_string(point.failures), std::to_string(point.lost),
         where_any(point.margin, point.margin.min), where_any(point.margin, point.margin.p50),
         where_any(point.slip, point.slip.p50), where_any(point.slip, point.slip.p99)});
  }
  return sheet;
}

TextSheet list_of(const std::vector<QuorumPoint>& points) {
  TextSheet sheet{.titles = {"strategy", "nodes", "down", "frozen", "slow", "slow_seconds",
                             "clients", "sections_per_second", "acquire_p50_seconds",
                             "acquire_p99_seconds", "acquire_max_seconds", "commands_per_section",
                             "split_votes", "rounds_per_grant", "granted_share",
                             "validity_p50_seconds", "validity_min_seconds", "violated"}};
  for (const QuorumPoint& point : points) {
    sheet.rows.push_back(
        {csv_field(point.strategy), std::to_string(point.nodes), std::to_string(point.down),
         std::to_string(point.frozen), std::to_string(point.slow), number(point.slow_seconds),
         std::to_string(point.clients), number(point.sections_per_second),
         where_any(point.acquire, point.acquire.p50), where_any(point.acquire, point.acquire.p99),
         where_any(point.acquire, point.acquire.max), number(point.commands_per_section),
         std::to_string(point.split_votes), number(point.rounds_per_grant),
         number(point.granted_share), where_any(point.validity, point.validity.p50),
         where_any(point.validity, point.validity.min), true_or_false(point.violated)});
  }
  return sheet;
}

}  // namespace lockbench::results

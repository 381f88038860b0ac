#include "results/tables/belief_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/tables/units.h"

namespace lockbench::results {
namespace {

std::string gap_text(double seconds) {
  if (!std::isfinite(seconds)) return "without end";
  return seconds > 0 ? "+" + human_seconds(seconds) : human_seconds(seconds);
}

}  // namespace

BeliefGap make_belief_gap(std::string scenario, std::string strategy, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  BeliefGap gap{.scenario = std::move(scenario),
                .strategy = std::move(strategy),
                .seconds = std::move(seconds)};
  if (gap.seconds.empty()) return gap;
  // One that was seen: there is nothing half way to infinity.
  gap.p50 = gap.seconds[(gap.seconds.size() - 1) / 2];
  gap.max = gap.seconds.back();
  return gap;
}

TextSheet sheet_of(const std::vector<BeliefGap>& gaps) {
  TextSheet sheet{.titles = {"belief gap", "plays", "p50", "max"}};
  for (const BeliefGap& gap : gaps) {
    sheet.rows.push_back({fmt::format("{} / {}", gap.scenario, gap.strategy),
                          std::to_string(gap.seconds.size()), gap_text(gap.p50),
                          gap_text(gap.max)});
  }
  return sheet;
}

}  // namespace lockbench::results

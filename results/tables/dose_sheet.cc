#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "results/tables/csv.h"
#include "results/tables/experiment_sheet.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

/// One strategy's response to one scenario, by ratio.
struct Curve {
  std::string scenario, strategy;
  std::map<double, const DosePoint*> points;

  /// From which ratio on, at every one that was played, at least half of the plays were violated.
  const DosePoint* half() const {
    const DosePoint* from = nullptr;
    for (auto one = points.rbegin(); one != points.rend(); ++one) {
      const DosePoint* const point = one->second;
      if (point->plays == 0) continue;
      if (point->violated_share < 0.5) break;
      from = point;
    }
    return from;
  }
  bool ever() const {
    return std::any_of(points.begin(), points.end(),
                       [](const auto& one) { return one.second->violated > 0; });
  }
};

std::vector<Curve> curves_of(const std::vector<DosePoint>& points) {
  std::vector<Curve> curves;
  for (const DosePoint& point : points) {
    auto curve = std::find_if(curves.begin(), curves.end(), [&](const Curve& one) {
      return one.scenario == point.scenario && one.strategy == point.strategy;
    });
    if (curve == curves.end()) {
      curve = curves.insert(curve, {.scenario = point.scenario, .strategy = point.strategy});
    }
    curve->points[point.ratio] = &point;
  }
  return curves;
}

/// "10 plays", or "3 to 10" where points differ.
std::string plays_of(const std::vector<DosePoint>& points) {
  const auto [fewest, most] = std::minmax_element(
      points.begin(), points.end(), [](const auto& a, const auto& b) { return a.plays < b.plays; });
  return fewest->plays == most->plays
             ? fmt::format("{} plays a point", most->plays)
             : fmt::format("{} to {} plays a point", fewest->plays, most->plays);
}

/// How it was measured: TTLs differ, as stores and timers do.
std::vector<std::string> terms_of(const std::vector<DosePoint>& points) {
  std::map<double, std::vector<std::string>> by_ttl;
  for (const DosePoint& point : points) {
    auto& names = by_ttl[point.ttl_seconds];
    if (std::find(names.begin(), names.end(), point.strategy) == names.end()) {
      names.push_back(point.strategy);
    }
  }
  std::vector<std::string> lines{plays_of(points)};
  for (const auto& [ttl, names] : by_ttl) {
    lines.push_back(fmt::format("TTL {}: {}", human_seconds(ttl), fmt::join(names, ", ")));
  }
  return lines;
}

std::string share_of(const Curve& curve, double ratio) {
  const auto found = curve.points.find(ratio);
  if (found == curve.points.end() || found->second->plays == 0) return "–";
  return fmt::format("{:.0f}", 100 * found->second->violated_share);
}

std::vector<std::string> readings_of(const std::string& scenario,
                                     const std::vector<Curve>& curves) {
  std::map<double, std::vector<std::string>> from;
  std::vector<std::string> never, seldom;
  double known_to = std::numeric_limits<double>::infinity();  // of those never violated
  for (const Curve& curve : curves) {
    if (curve.scenario != scenario) continue;
    if (const DosePoint* const half = curve.half()) {
      from[half->ratio].push_back(curve.strategy);
    } else if (curve.ever()) {
      seldom.push_back(curve.strategy);
    } else {
      never.push_back(curve.strategy);
      known_to = std::min(known_to, curve.points.rbegin()->first);
    }
  }
  std::vector<std::string> lines;
  lines.reserve(from.size() + 2);
  for (const auto& [ratio, names] : from) {
    lines.push_back(fmt::format("{}: at least half of the sections are violated from {} TTL on: {}",
                                scenario, ratio, fmt::join(names, ", ")));
  }
  if (!seldom.empty()) {
    lines.push_back(fmt::format("{}: fewer than half are violated at the greatest length: {}",
                                scenario, fmt::join(seldom, ", ")));
  }
  if (!never.empty()) {
    lines.push_back(fmt::format("{}: none was violated up to {} TTL: {}", scenario, known_to,
                                fmt::join(never, ", ")));
  }
  return lines;
}

}  // namespace

TextSheet sheet_of(const std::vector<DosePoint>& points) {
  std::set<double> ratios;
  for (const DosePoint& point : points) ratios.insert(point.ratio);
  TextSheet sheet{.titles = {"% violated, by length in TTLs"}};
  for (const double ratio : ratios) sheet.titles.push_back(fmt::format("{}", ratio));
  for (const Curve& curve : curves_of(points)) {
    std::vector<std::string> row{fmt::format("{} / {}", curve.scenario, curve.strategy)};
    for (const double ratio : ratios) row.push_back(share_of(curve, ratio));
    sheet.rows.push_back(std::move(row));
  }
  return sheet;
}

TextSheet list_of(const std::vector<DosePoint>& points) {
  TextSheet sheet{.titles = {"scenario", "strategy", "ratio", "ttl_seconds", "plays", "violated",
                             "violated_share"}};
  for (const DosePoint& point : points) {
    sheet.rows.push_back({csv_field(point.scenario), csv_field(point.strategy),
                          fmt::format("{}", point.ratio), fmt::format("{}", point.ttl_seconds),
                          std::to_string(point.plays), std::to_string(point.violated),
                          point.plays > 0 ? fmt::format("{}", point.violated_share) : ""});
  }
  return sheet;
}

std::vector<std::string> readings(const std::vector<DosePoint>& points) {
  const std::vector<Curve> curves = curves_of(points);
  std::vector<std::string> lines = points.empty() ? std::vector<std::string>{} : terms_of(points);
  std::vector<std::string> told;
  for (const Curve& curve : curves) {
    if (std::find(told.begin(), told.end(), curve.scenario) != told.end()) continue;
    told.push_back(curve.scenario);
    const auto more = readings_of(curve.scenario, curves);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

}  // namespace lockbench::results

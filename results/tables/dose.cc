#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "results/tables/experiments.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

/// One strategy's response to one scenario, by ratio: the points that were played.
struct Curve {
  std::string scenario, strategy;
  std::map<double, const DosePoint*> points;

  /// The ratio from which on at least half of the plays at every ratio violated exclusion.
  const DosePoint* half() const {
    const DosePoint* from = nullptr;
    for (auto one = points.rbegin(); one != points.rend(); ++one) {
      if (one->second->violated_share < 0.5) break;
      from = one->second;
    }
    return from;
  }
  bool ever_violated() const {
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
    if (point.plays > 0) curve->points[point.ratio] = &point;
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

/// How it was measured: the TTL depends on the store's timers.
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

std::vector<std::string> findings_of(const std::string& scenario,
                                     const std::vector<Curve>& curves) {
  std::map<double, std::vector<std::string>> from;
  std::vector<std::string> never, seldom;
  // The greatest length at which all of those never violated were played.
  double known_to = std::numeric_limits<double>::infinity();
  for (const Curve& curve : curves) {
    if (curve.scenario != scenario || curve.points.empty()) continue;
    if (const DosePoint* const half = curve.half()) {
      from[half->ratio].push_back(curve.strategy);
    } else if (curve.ever_violated()) {
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
    lines.push_back(
        fmt::format("{}: fewer than half of the sections are violated at the greatest length: {}",
                    scenario, fmt::join(seldom, ", ")));
  }
  if (!never.empty()) {
    lines.push_back(fmt::format("{}: no section is violated up to {} TTL: {}", scenario, known_to,
                                fmt::join(never, ", ")));
  }
  return lines;
}

}  // namespace

Table point_table(const std::vector<DosePoint>& points) {
  using Point = DosePoint;
  static const std::vector<Field<Point>> fields{
      {{"scenario", "", "scenario"}, &Point::scenario},
      {{"strategy", "", "strategy"}, &Point::strategy},
      {{"ratio", "", "length/TTL", Unit::number}, &Point::ratio},
      {{"ttl_seconds", "", "TTL", Unit::seconds}, &Point::ttl_seconds},
      {{"plays", "", "plays", Unit::count}, &Point::plays},
      {{"violated", "", "violated", Unit::count}, &Point::violated},
      {{"violated_share", "", "share", Unit::share},
       [](const Point& point) {
         return point.plays > 0 ? std::optional(point.violated_share) : std::nullopt;
       }},
  };
  return table_of(fields, points);
}

Table dose_matrix(const std::vector<DosePoint>& points) {
  std::vector<Field<Curve>> fields{
      {{"curve", "", "% violated, by length in TTLs"},
       [](const Curve& curve) { return fmt::format("{} / {}", curve.scenario, curve.strategy); }}};
  std::set<double> ratios;
  for (const DosePoint& point : points) ratios.insert(point.ratio);
  for (const double ratio : ratios) {
    const std::string name = fmt::format("{}", ratio);
    fields.push_back({{name, "", name, Unit::number}, [ratio](const Curve& curve) -> Cell {
                        const auto found = curve.points.find(ratio);
                        if (found == curve.points.end()) return {};
                        const double percent = 100 * found->second->violated_share;
                        return {percent, Tone::plain, fmt::format("{:.0f}", percent)};
                      }});
  }
  return table_of(fields, curves_of(points));
}

std::vector<std::string> findings(const std::vector<DosePoint>& points) {
  const std::vector<Curve> curves = curves_of(points);
  std::vector<std::string> lines = points.empty() ? std::vector<std::string>{} : terms_of(points);
  std::vector<std::string> seen;
  for (const Curve& curve : curves) {
    if (std::find(seen.begin(), seen.end(), curve.scenario) != seen.end()) continue;
    seen.push_back(curve.scenario);
    const auto more = findings_of(curve.scenario, curves);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

}  // namespace lockbench::results

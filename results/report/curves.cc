#include "results/report/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "results/report/limits.h"
#include "results/stats/figures.h"

namespace lockbench::results::report {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// It has percentiles, but no buckets.
bool is_condensed(const Distribution* distribution) {
  return distribution->buckets.empty() && distribution->censored.buckets.empty();
}

double samples_of(const Distribution& distribution) {
  return static_cast<double>(distribution.count + distribution.censored.count);
}

/// Of a plateau only the ends are kept.
void add(std::vector<Point>& points, Point point) {
  const std::size_t n = points.size();
  if (n >= 2 && points[n - 1].second == point.second && points[n - 2].second == point.second) {
    points.back() = point;
  } else {
    points.push_back(point);
  }
}

/// Through the percentiles that a condensed result still has.
std::vector<Point> percentiles_curve(const Distribution& condensed) {
  if (!std::isfinite(condensed.p50)) return {};
  const std::array<Point, 6> known{{{1, condensed.min},
                                    {2, condensed.p50},
                                    {10, condensed.p90},
                                    {20, condensed.p95},
                                    {100, condensed.p99},
                                    {1000, condensed.p999}}};
  const double count = samples_of(condensed);
  std::vector<Point> points;
  for (const Point& point : known) {
    if (point.first < count && std::isfinite(point.second)) points.push_back(point);
  }
  points.emplace_back(count, condensed.max);
  return points;
}

}  // namespace

std::vector<Point> percentile_curve(const Distribution& distribution) {
  if (!distribution.any()) return {};
  if (is_condensed(&distribution)) return percentiles_curve(distribution);
  const double count = samples_of(distribution);
  std::vector<Point> points;
  for (const PercentileStep& step : percentile_steps(distribution)) {
    const double x = 100 / (100 - step.percent);
    if (x < count && points.size() < kMostPoints - 1) add(points, {x, step.value});
  }
  add(points, {count, distribution.max});
  return points;
}

Distribution merged(std::span<const Distribution* const> distributions) {
  std::vector<const Distribution*> filled;
  std::copy_if(distributions.begin(), distributions.end(), std::back_inserter(filled),
               [](const Distribution* one) { return one->any(); });
  if (filled.size() == 1) return *filled.front();
  Distribution sum;
  for (double* figure :
       {&sum.mean, &sum.stddev, &sum.p50, &sum.p90, &sum.p95, &sum.p99, &sum.p999}) {
    *figure = kUnknown;
  }
  std::map<double, std::uint64_t> buckets, censored;
  for (const Distribution* one : filled) {
    sum.min = sum.any() ? std::min(sum.min, one->min) : one->min;
    if (one->max >= sum.max) sum.at_least.clear();
    if (one->max >= sum.max && one->is_at_least("max")) sum.at_least = {"max"};
    sum.max = std::max(sum.max, one->max);
    sum.count += one->count;
    sum.overflow += one->overflow;
    sum.censored.count += one->censored.count;
    sum.censored.overflow += one->censored.overflow;
    sum.relative_error = std::max(sum.relative_error, one->relative_error);
    for (const auto& bucket : one->buckets) buckets[bucket.upper] += bucket.count;
    for (const auto& bucket : one->censored.buckets) censored[bucket.upper] += bucket.count;
  }
  // A curve of only some of the samples would be wrong.
  if (std::any_of(filled.begin(), filled.end(), &is_condensed)) return sum;
  for (const auto& [upper, count] : buckets) sum.buckets.push_back({upper, count});
  for (const auto& [upper, count] : censored) sum.censored.buckets.push_back({upper, count});
  return sum;
}

OverTime over_time(std::span<const SeriesPoint> series) {
  OverTime lines;
  const std::size_t step = series.size() / kMostPoints + 1;
  double from = 0;
  for (std::size_t i = 0; i < series.size(); i += step) {
    const auto group = series.subspan(i, std::min(step, series.size() - i));
    const double until = group.back().t;
    if (!(until > from)) continue;  // a broken file
    double sections = 0, worst = 0;
    for (const SeriesPoint& point : group) {
      sections += static_cast<double>(point.sections);
      if (std::isfinite(point.acquire_p99)) worst = std::max(worst, point.acquire_p99);
    }
    lines.rate.emplace_back(until, sections / (until - from));
    lines.p99.emplace_back(until, worst > 0 ? worst : kUnknown);
    from = until;
  }
  return lines;
}

}  // namespace lockbench::results::report

#include "results/report/curves.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "results/report/limits.h"

namespace lockbench::results::report {
namespace {

constexpr double kTicksPerHalving = 5;

/// The next level as a share; both below 1.
double next_level(double level) {
  const double halvings = std::floor(std::log2(1 / (1 - level))) + 1;
  return level + 1 / (kTicksPerHalving * std::exp2(halvings));
}

/// On a plateau only its ends say something.
void add(std::vector<Point>& points, Point point) {
  const std::size_t n = points.size();
  if (n >= 2 && points[n - 1].second == point.second && points[n - 2].second == point.second) {
    points.back() = point;
  } else {
    points.push_back(point);
  }
}

}  // namespace

std::vector<Point> percentile_curve(const Distribution& distribution) {
  const auto count = static_cast<double>(distribution.count);
  std::vector<Point> points;
  double level = 0;
  double below = 0;
  for (const auto& bucket : distribution.buckets) {
    below += static_cast<double>(bucket.count);
    while (level < 1 && below >= level * count && below < count &&
           points.size() < kMostPoints - 1) {
      // The largest sample is known exactly.
      add(points, {1 / (1 - level), std::min(bucket.upper, distribution.max)});
      level = next_level(level);
    }
  }
  if (distribution.count > 0) add(points, {std::max(count, 1.0), distribution.max});
  return points;
}

Distribution merged(std::span<const Distribution* const> distributions) {
  Distribution sum;
  std::map<double, std::uint64_t> buckets;
  for (const Distribution* one : distributions) {
    if (one->count == 0) continue;
    sum.min = sum.count == 0 ? one->min : std::min(sum.min, one->min);
    sum.max = std::max(sum.max, one->max);
    sum.count += one->count;
    sum.overflow += one->overflow;
    sum.relative_error = std::max(sum.relative_error, one->relative_error);
    for (const auto& bucket : one->buckets) buckets[bucket.upper] += bucket.count;
  }
  for (const auto& [upper, count] : buckets) sum.buckets.push_back({upper, count});
  return sum;
}

std::vector<Point> cumulative(std::span<const double> samples) {
  std::vector<Point> points;
  const auto count = static_cast<double>(samples.size());
  const std::size_t step = samples.size() / kMostPoints + 1;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool last = i + 1 == samples.size() || !std::isfinite(samples[i + 1]);
    if (!std::isfinite(samples[i]) || (i % step != 0 && !last)) continue;
    points.emplace_back(samples[i], static_cast<double>(i + 1) / count);
  }
  return points;
}

OverTime over_time(std::span<const SeriesPoint> series) {
  OverTime lines;
  const std::size_t step = series.size() / kMostPoints + 1;
  double from = 0;
  for (std::size_t i = 0; i < series.size(); i += step) {
    const auto group = series.subspan(i, std::min(step, series.size() - i));
    const double until = group.back().t;
    if (!(until > from)) continue;  // time does not run backwards
    double sections = 0, worst = 0;
    for (const SeriesPoint& point : group) {
      sections += static_cast<double>(point.sections);
      if (std::isfinite(point.acquire_p99)) worst = std::max(worst, point.acquire_p99);
    }
    lines.rate.emplace_back(until, sections / (until - from));
    if (worst > 0) lines.p99.emplace_back(until, worst);
    from = until;
  }
  return lines;
}

}  // namespace lockbench::results::report

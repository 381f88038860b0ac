#pragma once

#include <span>
#include <vector>

#include "results/file/model.h"
#include "results/report/view.h"

namespace lockbench::results::report {

/// x is 1 / (1 - p), y the value at p: HdrHistogram's steps, five for each halving of the distance
/// to 100 %, and the maximum at the end. Without buckets, as in a thinned result, only where
/// percentiles are known. Empty without samples, or if nothing but the maximum is known.
std::vector<Point> percentile_curve(const Distribution& distribution);

/// All samples in one, as far as a curve needs them: of several, percentiles and mean are not a
/// number, and there are no buckets unless all have some.
Distribution merged(std::span<const Distribution* const> distributions);

/// A run's seconds, thinned out to what a chart can show: rates are means over the seconds that
/// share a point, latencies the worst of them, so that no peak is lost.
struct OverTime {
  std::vector<Point> rate, p99;
};
OverTime over_time(std::span<const SeriesPoint> series);

}  // namespace lockbench::results::report

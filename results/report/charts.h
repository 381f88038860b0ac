#pragma once

#include <span>
#include <utility>

#include "results/file/model.h"

namespace lockbench::results::report {

inline constexpr std::size_t kMostStrategies = 64;
inline constexpr std::size_t kMostPoints = 240;  ///< of one line

using Point = std::pair<double, double>;  ///< NaN: a gap

/// Lines over an axis, as charts.js draws them.
struct Chart {
  struct Axis {
    enum class Scale {
      linear,
      log,
      percentile,  ///< logarithmic in 1 / (1 - p): 100 is 99 %
    };
    std::string title;
    bool seconds = false;
    Scale scale = Scale::log;
  };
  struct Line {
    std::string name;
    std::vector<Point> points;
    bool shown = true;  ///< at first
  };
  /// A stretch of the x axis; without `until`, up to the end of the axis.
  struct Mark {
    std::string label;
    double from = 0;
    std::optional<double> until;
  };

  std::string title, note;
  Axis x, y;
  std::vector<Line> lines;
  std::vector<Mark> marks;
};

/// Of each strategy, the repetition with the median throughput, in the order of the result.
std::vector<const Run*> typical_runs(const Result& result);

/// x is 1 / (1 - p), y the value at p: HdrHistogram's steps, five for each halving of the distance
/// to 100 %, and the maximum at the end. Without buckets, as in a condensed result, only the known
/// percentiles. Empty without samples, or if only the maximum is known.
std::vector<Point> percentile_curve(const Distribution& distribution);

/// A run's seconds, thinned out for a chart: the rate of a point is the mean of its seconds, the
/// latency the worst of them, so that no peak is lost.
struct OverTime {
  std::vector<Point> rate, p99;
};
OverTime over_time(std::span<const SeriesPoint> series);

/// Percentiles, throughput and waits over time of a result of one load.
std::vector<Chart> charts_of(const Result& result);

/// Of a sweep of rates or clients: the p99 and the throughput at each. A result of one named load.
std::vector<Chart> sweep_charts(const Result& result);

/// Of a sweep of simulations, if its values are numbers: violations and unavailability at each.
std::vector<Chart> sweep_charts(const std::vector<Simulation>& simulations);

/// JSON that can stand inside an HTML element: no "<", ">" or "&", ASCII only. NaN becomes null.
std::string to_json(const std::vector<Chart>& charts);

}  // namespace lockbench::results::report

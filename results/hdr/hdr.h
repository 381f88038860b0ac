#pragma once

#include <span>
#include <string>
#include <string_view>

#include "results/file/model.h"

namespace lockbench::results {

// HdrHistogram's file formats (https://github.com/HdrHistogram/HdrHistogram), which its tools and
// plotters read. Values are whole nanoseconds at three significant digits. A bucket's samples stand
// at its middle, the largest sample where it was; those above one hour at one hour.

/// Percentile output, `.hgrm`: five lines for each halving of the distance to 100 %, in µs.
std::string to_hgrm(const Distribution& distribution);

/// What was recorded during one stretch of time.
struct HdrInterval {
  std::string_view tag;  ///< no comma, no blank
  double start_seconds = 0, length_seconds = 0;
  const Distribution& distribution;
};

/// Interval log, `.hlog`, format 1.3. Starts count from `base_seconds` after the epoch.
std::string to_hlog(double base_seconds, std::span<const HdrInterval> intervals);

}  // namespace lockbench::results

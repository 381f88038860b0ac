#include "results/hdr/hdr.h"

#include <fmt/format.h>

#include <cmath>

#include "results/hdr/hdr_histogram.h"

namespace lockbench::results {
namespace {

constexpr double kTicksPerHalving = 5;
constexpr double kNanosecondsPerMicrosecond = 1e3;
constexpr double kNanosecondsPerMillisecond = 1e6;

/// HdrHistogram's steps: five between 0 and 50 %, five between there and 75 %, and so on; 100 where
/// a double cannot tell the next one from the last.
double next_level(double level) {
  const double halvings = std::floor(std::log2(100 / (100 - level))) + 1;
  const double next = level + 100 / (kTicksPerHalving * std::exp2(halvings));
  return next > level ? next : 100;
}

std::string percentile_line(double value, double level, std::uint64_t count) {
  const std::string line = fmt::format("{:12.3f} {:2.12f} {:10}",
                                       value / kNanosecondsPerMicrosecond, level / 100, count);
  // The last line has no distance to 100 % left.
  return level < 100 ? fmt::format("{} {:14.2f}\n", line, 1 / (1 - level / 100)) : line + "\n";
}

std::string percentile_lines(const HdrHistogram& histogram) {
  std::string out;
  double level = 0;
  std::uint64_t below = 0;
  const auto& counts = histogram.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    below += counts[i];
    const auto highest = static_cast<double>(HdrLayout::highest_equivalent(i));
    const double reached =
        100 * static_cast<double>(below) / static_cast<double>(histogram.total());
    // One bucket may pass several steps; all of its lines show the same value. About 250 steps lead
    // to 100.
    while (level < 100 && reached >= level && below < histogram.total()) {
      out += percentile_line(highest, level, below);
      level = next_level(level);
    }
  }
  if (below == 0) return out;
  if (level < 100) out += percentile_line(static_cast<double>(histogram.max()), level, below);
  return out + percentile_line(static_cast<double>(histogram.max()), 100, below);
}

}  // namespace

std::string to_hgrm(const Distribution& distribution) {
  const HdrHistogram histogram(distribution);
  const auto in_us = [](double value) { return value / kNanosecondsPerMicrosecond; };
  std::string out = fmt::format("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile",
                                "TotalCount", "1/(1-Percentile)");
  out += percentile_lines(histogram);
  out += fmt::format("#[Mean    = {:12.3f}, StdDeviation   = {:12.3f}]\n", in_us(histogram.mean()),
                     in_us(histogram.stddev()));
  out += fmt::format("#[Max     = {:12.3f}, Total count    = {:12}]\n",
                     in_us(static_cast<double>(histogram.max())), histogram.total());
  out += fmt::format("#[Buckets = {:12}, SubBuckets     = {:12}]\n", HdrLayout::buckets(),
                     HdrLayout::kSubBuckets);
  return out;
}

std::string to_hlog(double base_seconds, std::span<const HdrInterval> intervals) {
  std::string out = "#[Logged with lockbench; values in ns, Interval_Max in ms]\n";
  out += "#[Histogram log format version 1.3]\n";
  out += fmt::format("#[BaseTime: {:.3f} (seconds since epoch)]\n", base_seconds);
  out += fmt::format("#[StartTime: {:.3f} (seconds since epoch)]\n", base_seconds);
  out +=
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
  for (const HdrInterval& interval : intervals) {
    const HdrHistogram histogram(interval.distribution);
    out += fmt::format("Tag={},{:.3f},{:.3f},{:.3f},{}\n", interval.tag, interval.start_seconds,
                       interval.length_seconds,
                       static_cast<double>(histogram.max()) / kNanosecondsPerMillisecond,
                       histogram.encoded());
  }
  return out;
}

}  // namespace lockbench::results

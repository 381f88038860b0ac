#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "loadgen/record/histogram.h"

namespace lockbench::exporter {

/// A histogram in the exported form: 25 bounds, 5 µs · 2^n, and the samples above. Plain data.
class LatencyBuckets {
 public:
  static constexpr std::size_t kBounds = 25;
  /// In nanoseconds, inclusive. Needs n < kBounds.
  static constexpr std::int64_t bound(std::size_t n) { return std::int64_t{5'000} << n; }

  /// Each bucket of the fine histogram is assigned by its midpoint, as its bounds differ from
  /// these: a sample within 0.8 % of a bound may be counted on the other side. Count and sum are
  /// exact.
  void add(const loadgen::HistogramSnapshot& fine);
  LatencyBuckets& operator+=(const LatencyBuckets& more);

  std::uint64_t count() const;
  double sum_seconds() const { return seconds(sum_); }
  /// The number of samples at or below bound n.
  std::array<std::uint64_t, kBounds> cumulative() const;

 private:
  std::array<std::uint64_t, kBounds + 1> counts_{};
  Duration sum_{};
};

}  // namespace lockbench::exporter

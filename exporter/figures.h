#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "loadgen/record/histogram.h"
#include "strategies/duration.h"

namespace lockbench::exporter {

/// Jain's index over what the clients of a run got lately, so that a long run shows a client that
/// starves now. Not thread-safe.
class FairnessWindow {
 public:
  /// The window is at least so long, and at most twice as long if it is read that often.
  static constexpr Duration kShortest = std::chrono::seconds(30);

  /// Of a run of so many clients that begins now.
  FairnessWindow(std::size_t clients, TimePoint now);

  /// `sections`: of each client since the run began. 0 if there were none lately.
  double jain(const std::vector<std::uint64_t>& sections, TimePoint now);

 private:
  std::vector<std::uint64_t> older_, newer_;  ///< earlier readings
  TimePoint newer_at_;
};

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

#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "loadgen/record/memory.h"
#include "results/file/model.h"
#include "strategies/duration.h"

namespace lockbench::loadgen {

/// The log-linear layout of HdrHistogram: one bucket per nanosecond at first, then 2^Bits per power
/// of two, up to one hour. Bounds are in nanoseconds and belong to their bucket.
template <int Bits>
struct LogLinearLayout {
  static constexpr std::int64_t kHighest = 3'600'000'000'000;
  static constexpr int kSubBucketBits = Bits;
  static constexpr std::int64_t kSubBuckets = 1 << kSubBucketBits;
  /// The largest error of a midpoint: half a bucket's width as a share of its lower bound.
  static constexpr double kRelativeError = 0.5 / kSubBuckets;

  /// `nanoseconds` must lie within 0 and kHighest.
  static constexpr std::size_t index(std::int64_t nanoseconds) {
    if (nanoseconds < 2 * kSubBuckets) return static_cast<std::size_t>(nanoseconds);
    const auto value = static_cast<std::uint64_t>(nanoseconds);
    const auto shift = static_cast<int>(std::bit_width(value)) - kSubBucketBits - 1;
    return static_cast<std::size_t>(shift) * kSubBuckets + (value >> shift);
  }
  static constexpr std::int64_t lower(std::size_t index) {
    const auto bucket = static_cast<std::int64_t>(index);
    if (bucket < 2 * kSubBuckets) return bucket;
    return (bucket % kSubBuckets + kSubBuckets) << (bucket / kSubBuckets - 1);
  }
  static constexpr std::int64_t upper(std::size_t index) { return lower(index + 1) - 1; }
  static constexpr std::int64_t midpoint(std::size_t index) {
    return lower(index) + (upper(index) - lower(index)) / 2;
  }
};

using HistogramLayout = LogLinearLayout<6>;

inline constexpr std::size_t kHistogramBuckets =
    HistogramLayout::index(HistogramLayout::kHighest) + 1;

/// A distribution at one moment: plain data. Count, sum (up to 290 years), min and max are exact,
/// percentiles within the layout's relative error.
struct HistogramSnapshot {
  std::vector<std::uint64_t> buckets = std::vector<std::uint64_t>(kHistogramBuckets);
  std::uint64_t overflow = 0;  ///< samples above the layout's range, counted in count()
  Duration sum{};
  Duration min{}, max{};  ///< zero if there is no sample

  /// Adds one sample. A negative sample is a programming error and counts as 0.
  void record(Duration sample);

  std::uint64_t count() const;
  Duration mean() const;
  Duration stddev() const;

  /// By nearest rank; `q` from 0 to 1. Zero if there is no sample; the maximum if the rank is among
  /// the overflow.
  Duration percentile(double q) const;

  void merge(const HistogramSnapshot& other);

  /// The samples since `earlier`, an older snapshot of the same histogram. Its min and max are
  /// bounds of buckets.
  HistogramSnapshot minus(const HistogramSnapshot& earlier) const;
};

/// In the result file's form, in seconds. `censored`: samples that were cut off, by their observed
/// length.
results::Distribution to_distribution(const HistogramSnapshot& complete,
                                      const HistogramSnapshot& censored = {});
/// The inverse, for a distribution that to_distribution() made: its complete and its censored
/// samples. Sums, and the bounds of censored samples, are only as exact as the buckets.
HistogramSnapshot to_snapshot(const results::Distribution& distribution);
HistogramSnapshot to_censored_snapshot(const results::Distribution& distribution);

/// A histogram for many writing threads. Has one shard per CPU rather than per thread: threads on
/// one CPU do not run at the same time, and 10,000 clients do not need gigabytes. Thread-safe.
class ShardedHistogram {
 public:
  ShardedHistogram();
  /// The number of shards is rounded up to a power of two.
  explicit ShardedHistogram(std::size_t shards);

  /// Takes no lock and allocates nothing. A negative sample is a programming error and counts as 0.
  void record(Duration sample) noexcept;
  /// Records `samples` samples, spread evenly from the shortest to the longest, without the first
  /// `left_out`. As quick for billions as for one.
  void record_evenly(Duration longest, std::uint64_t samples, std::uint64_t left_out = 0,
                     Duration shortest = {}) noexcept;

  /// Adds samples that were recorded elsewhere.
  void add(const HistogramSnapshot& more) noexcept;

  /// Whether nothing was recorded. Cheap.
  bool empty() const noexcept;

  /// Does not stall the writers. A sample that is being recorded may be in some figures and not in
  /// others yet. Counts never shrink from one snapshot to the next.
  HistogramSnapshot snapshot() const;

 private:
  struct alignas(kCacheLine) Shard {
    static constexpr std::int64_t kTop = std::numeric_limits<std::int64_t>::max();

    std::atomic<std::int64_t> sum{0};
    std::atomic<std::int64_t> min_below_top{0};  ///< zero as all else here: nothing was recorded
    std::atomic<std::int64_t> max{0};
    std::atomic<std::uint64_t> overflow{0};
    alignas(kCacheLine) std::atomic<std::uint64_t> buckets[kHistogramBuckets]{};

    void widen_to(std::int64_t value) noexcept;
    bool empty() const { return min_below_top.load(std::memory_order_relaxed) == 0; }
  };

  std::size_t shard_count_;  ///< a power of two
  Zeros<Shard> shards_;      ///< hundreds of 19 KiB each, of which most runs use few
};

}  // namespace lockbench::loadgen

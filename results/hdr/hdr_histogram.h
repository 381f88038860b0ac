#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "results/file/model.h"

namespace lockbench::results {

/// HdrHistogram's layout for values from 1 ns to 1 h at three significant digits: 1024 buckets for
/// each power of two.
struct HdrLayout {
  static constexpr int kDigits = 3;
  static constexpr std::int64_t kLowest = 1, kHighest = 3'600'000'000'000;
  static constexpr int kHalfBits = 10;
  static constexpr std::int64_t kSubBuckets = 2 << kHalfBits;

  static std::size_t index(std::int64_t value);
  static std::int64_t lowest_equivalent(std::size_t index);
  static std::int64_t highest_equivalent(std::size_t index);
  /// Groups of sub-buckets that the range takes.
  static int buckets();
};

/// A distribution in that layout: counts by index, up to the largest that holds something.
class HdrHistogram {
 public:
  explicit HdrHistogram(const Distribution& distribution);

  const std::vector<std::uint64_t>& counts() const { return counts_; }
  std::uint64_t total() const { return total_; }
  std::int64_t max() const;
  /// By the middle of each bucket.
  double mean() const;
  double stddev() const;

  /// Version 2 of the encoding, compressed, as text in base 64: a log's last column.
  std::string encoded() const;

 private:
  void add(std::int64_t nanoseconds, std::uint64_t count);

  std::vector<std::uint64_t> counts_;
  std::uint64_t total_ = 0;
};

}  // namespace lockbench::results

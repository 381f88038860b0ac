#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockbench::results {

/// One measured distribution. Percentiles come from the fine histogram.
struct Distribution {
  struct Bucket {
    double upper = 0;
    std::uint64_t count = 0;
  };

  /// What was cut off, by a timeout or the end of the run: its full length is not known.
  struct Censored {
    std::uint64_t count = 0;
    std::vector<Bucket> buckets;  ///< by the length that was seen
    std::uint64_t overflow = 0;
  };

  std::uint64_t count = 0;  ///< of complete samples
  /// Over complete and censored samples, as if each of the latter had ended when it was cut off.
  double mean = 0, stddev = 0, min = 0;
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0, max = 0;
  double relative_error = 0;
  std::vector<Bucket> buckets;  ///< only those that hold something, growing
  std::uint64_t overflow = 0;   ///< samples above the histogram's range, counted in `count`
  Censored censored;
  /// Figures that are lower bounds, as a censored sample decides.
  std::vector<std::string> at_least;

  bool any() const { return count + censored.count > 0; }
  bool is_at_least(std::string_view figure) const {
    return std::find(at_least.begin(), at_least.end(), figure) != at_least.end();
  }
};

}  // namespace lockbench::results

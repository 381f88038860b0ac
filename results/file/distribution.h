#pragma once

#include <cstdint>
#include <vector>

namespace lockbench::results {

/// One measured distribution. Percentiles come from the fine histogram.
struct Distribution {
  struct Bucket {
    double upper = 0;
    std::uint64_t count = 0;
  };

  std::uint64_t count = 0;
  double mean = 0, stddev = 0, min = 0;
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0, max = 0;
  double relative_error = 0;
  std::vector<Bucket> buckets;  ///< only those that hold something, growing
  std::uint64_t overflow = 0;   ///< samples above the histogram's range, counted in `count`
};

}  // namespace lockbench::results

#pragma once

#include "results/file/model.h"

namespace lockbench::loadgen {

/// What most measurements look like: the median is the mean, the 99th percentile twice that.
inline results::Distribution around(double seconds, std::uint64_t count = 1000) {
  return {.count = count, .mean = seconds, .p50 = seconds, .p99 = 2 * seconds};
}

}  // namespace lockbench::loadgen

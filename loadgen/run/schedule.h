#pragma once

#include <cstdint>
#include <mutex>
#include <random>

#include "loadgen/run/workload.h"
#include "strategies/duration.h"

namespace lockbench::loadgen {

/// Intended starts of the sections of an open loop, shared by all clients: the next free client
/// takes the next one, and the n-th is the same whichever client takes it. Thread-safe.
class Schedule {
 public:
  /// Throws std::invalid_argument unless `per_second` is above 0 and finite. Constant spacing
  /// begins at `start`; with Poisson arrivals the first section comes a random gap later.
  Schedule(double per_second, Arrival arrival, TimePoint start, std::uint64_t seed);

  /// Never earlier than the previous one; in the past if the clients are late.
  TimePoint next();

 private:
  const double per_second_;
  const Arrival arrival_;
  const TimePoint start_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::uint64_t issued_ = 0;
  double elapsed_gaps_ = 0;  ///< sum of Poisson gaps, each in units of the mean gap
};

}  // namespace lockbench::loadgen

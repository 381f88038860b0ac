#pragma once

#include <cstdint>
#include <mutex>
#include <random>

#include "loadgen/run/workload.h"
#include "strategies/duration.h"

namespace lockbench::loadgen {

/// When the sections of an open loop are due. Shared by all clients: who is free takes the next
/// one, and the n-th intended start is the same whoever asks. Thread-safe.
class Schedule {
 public:
  /// `per_second` must be above 0 and finite: else std::invalid_argument. Constant spacing begins
  /// at `start`; with Poisson arrivals the first one comes a random gap later.
  Schedule(double per_second, Arrival arrival, TimePoint start, std::uint64_t seed);

  /// Never earlier than the one before; may lie in the past if the clients are late.
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

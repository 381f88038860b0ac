#pragma once

#include <cstdint>
#include <mutex>

#include "loadgen/run/random.h"
#include "loadgen/run/share.h"
#include "loadgen/run/workload.h"
#include "strategies/duration.h"

namespace lockbench::loadgen {

/// Intended starts of the sections of an open loop, shared by all clients: the next free client
/// takes the next one, and the n-th is the same whichever client takes it. Each process of a run
/// draws the whole schedule and takes its share, so that their starts together are those of one
/// process. Thread-safe.
class Schedule {
 public:
  /// Throws std::invalid_argument unless `per_second` is above 0 and finite. Constant spacing
  /// begins at `start`; with Poisson arrivals the first section comes a random gap later. The share
  /// has at least one client.
  Schedule(double per_second, Arrival arrival, TimePoint start, std::uint64_t seed,
           const Share& share = {});

  /// Never earlier than the previous one; in the past if the clients are late.
  TimePoint next();

  struct Due {
    std::uint64_t count = 0;
    Duration longest{};  ///< since the first of them
  };
  /// The further starts before `until`, which the schedule does not issue any more. Beyond the
  /// first they are counted by their rate, as there may be billions.
  Due due_before(TimePoint until);

 private:
  const double per_second_;
  const Arrival arrival_;
  const TimePoint start_;
  const Share share_;
  std::mutex mutex_;
  Random random_;
  std::uint64_t issued_ = 0;
  double elapsed_gaps_ = 0;  ///< sum of Poisson gaps, each in units of the mean gap
};

}  // namespace lockbench::loadgen

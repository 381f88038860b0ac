#pragma once

#include <span>

#include "loadgen/run/workload.h"

namespace lockbench::loadgen {

/// The busiest lock's part in the load.
struct LockShare {
  double busiest_key = 1;  ///< share of all sections: 1 / keys, more if they are skewed
  bool excludes = true;    ///< false: the lock cannot be the limit
};

/// The time of its lock that one section takes, over several runs. Times in seconds.
struct ServiceTimes {
  double hold = 0;
  /// From a release with a client waiting to the next grant, to any client; after other releases
  /// the lock is free.
  double turnaround = 0;
  double awaited_share = 0;  ///< of sections with a client waiting at their end
  double per_second = 0;     ///< sections

  /// How long a section keeps its lock from others: the hold and the handoff.
  double taken() const { return hold + awaited_share * turnaround; }
  /// The share of the time in which the busiest lock is taken, at this rate of all sections.
  double lock_taken(double rate, const LockShare& lock) const;
};
ServiceTimes service_times(std::span<const results::Run> runs);

}  // namespace lockbench::loadgen

#pragma once

#include <limits>
#include <span>
#include <string_view>

#include "results/file/model.h"
#include "results/stats/threshold.h"

namespace lockbench::loadgen {

/// Of one core; not a number where it is not known.
double server_cpu_share(const results::Run& run);

/// One run of an open loop.
results::CapacityStep judge_step(const results::Run& run, std::string_view purpose, double rate,
                                 std::span<const results::Threshold> objective);

/// The lock in which a section takes part.
struct LockShare {
  double busiest_key = 1;  ///< share of all sections: 1 / keys, more if they are skewed
  bool excludes = true;    ///< false: the lock cannot be the limit
};

/// All runs at one rate, which must keep the objective, serve the load, and leave the lock time to
/// be free. Runs that the generator or the machine disturbed can only show that it is kept, as
/// disturbance prolongs waits.
struct RateRuling {
  results::Decision decision = results::Decision::open;
  bool enough = false;    ///< runs and samples for a decision
  bool hindered = false;  ///< open, but missed if disturbed runs counted
  results::CapacityRate rate;
};
RateRuling judge_rate(double rate, std::span<const results::Run> runs,
                      std::span<const results::Threshold> objective, const LockShare& lock);

/// What one section costs its lock, over several runs. Times in seconds.
struct ServiceTimes {
  double hold = 0;
  /// From a release at which a client waited to the next grant, to whomever; after the other
  /// releases the lock is free.
  double turnaround = 0;
  double awaited_share = 0;  ///< of the sections: a client waited at their end

  /// For which a section keeps its lock from others: held, and being handed over.
  double taken() const { return hold + awaited_share * turnaround; }
};
ServiceTimes service_times(std::span<const results::Run> runs);

}  // namespace lockbench::loadgen

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "results/file/model.h"
#include "results/stats/threshold.h"

namespace lockbench::loadgen {

/// A step, which is one run of an open loop.
struct StepRuling {
  bool met = false;    ///< this step alone kept the objective and served the offered load
  bool valid = false;  ///< false: the generator limited the load
  std::string reason;  ///< why it was not met or not valid; else empty
};
StepRuling judge_step(const results::Run& run, std::span<const results::Threshold> objective);

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
  double per_second = 0;     ///< sections

  /// For which a section keeps its lock from others: held, and being handed over.
  double taken() const { return hold + awaited_share * turnaround; }
  /// For which share of the time the busiest lock is taken at this rate of all sections.
  double lock_taken(double rate, const LockShare& lock) const;
};
ServiceTimes service_times(std::span<const results::Run> runs);

/// Figures of a run at the lowest rate that missed the objective.
struct LimitEvidence {
  const results::Run& run;
  std::uint64_t clients = 1;
  LockShare lock{};
  std::string_view store = "the store";  ///< "redis"
  double store_cores = 1;                ///< that the store can use: 1 if one thread serves all
  int cores = 1;                         ///< of this machine
  bool step_valid = true;
  /// Of the whole search: with half of the steps invalid, none of its figures can be trusted.
  std::size_t steps = 0, invalid_steps = 0;
  std::string invalid_reason{};  ///< of the last such step
};

struct Limit {
  std::string name;    ///< "lock", "store", "generator", "clients" or "unknown"
  std::string reason;  ///< with the figures that show it, in one line
};

Limit name_limit(const LimitEvidence& evidence);

}  // namespace lockbench::loadgen

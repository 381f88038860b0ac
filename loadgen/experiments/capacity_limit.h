#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "results/file/model.h"
#include "results/stats/threshold.h"

namespace lockbench::loadgen {

/// Judges one run of an open loop: it must keep the objective, serve the offered load (except for
/// what the end of the run cut short), and have next to no refused, timed-out or failed
/// acquisitions.
results::CapacityStep judge_step(const results::Run& run, std::string_view purpose, double rate,
                                 std::span<const results::Threshold> objective);

/// Figures of the run at the lowest rate that did not keep the objective.
struct LimitEvidence {
  const results::Run& run;
  std::uint64_t clients = 1;
  double busiest_key_share = 1;  ///< of all sections: 1 / keys, more if they are skewed
  bool excludes = true;          ///< false: the lock cannot be the limit
  double store_cores = 1;        ///< that the store can use: 1 if one thread serves all
  int cores = 1;                 ///< of this machine
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

/// Seconds for which each section keeps its lock from the next: hold and handoff, or hold and
/// release if no client waited.
double occupancy(const results::Run& run);

}  // namespace lockbench::loadgen

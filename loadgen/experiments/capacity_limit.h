#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "results/file/model.h"
#include "results/stats/threshold.h"

namespace lockbench::loadgen {

/// Judges one run of an open loop: the objective must be kept, all that was offered be served (but
/// for what the end of the run cut short), and next to nothing be refused, timed out or failed.
results::CapacityStep judge_step(const results::Run& run, std::string_view purpose, double rate,
                                 std::span<const results::Threshold> objective);

/// By the run at the lowest rate that did not keep the objective.
struct LimitEvidence {
  const results::Run& run;
  std::uint64_t clients = 1;
  double busiest_key_share = 1;  ///< of all sections: 1 / keys unless they are skewed
  bool excludes = true;          ///< false: no lock stands in the way
  double store_cores = 1;        ///< that the store can keep busy: 1 where one thread serves all
  int cores = 1;                 ///< of this machine
  bool step_valid = true;
  /// Of the whole search: with idle clients late every other time, so is all else.
  std::size_t steps = 0, invalid_steps = 0;
  std::string invalid_reason{};  ///< of the last such step
};

struct Limit {
  std::string name;    ///< "lock", "store", "generator", "clients" or "unknown"
  std::string reason;  ///< with the figures that show it, in one line
};

Limit name_limit(const LimitEvidence& evidence);

/// What each section keeps its lock from the next, in seconds: hold and handoff, or where nobody
/// waited, hold and release.
double occupancy(const results::Run& run);

}  // namespace lockbench::loadgen

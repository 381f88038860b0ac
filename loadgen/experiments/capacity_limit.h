#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "loadgen/experiments/capacity_rate.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

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

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/file/distribution.h"

// What `capacity` found, as the result file has it.
namespace lockbench::results {

/// One run on the way to a capacity. Shares of CPU: the servers' of one core, not a number where it
/// is not known, the generator's of all cores.
struct CapacityStep {
  std::string purpose;  ///< "search" or "confirm"
  double rate = 0;      ///< offered sections per second
  double achieved = 0;
  Distribution acquire;
  bool met = false;   ///< this step alone kept the objective and served the offered load
  bool valid = true;  ///< false: the generator limited the load
  double server_cpu_share = 0, generator_cpu_share = 0;
  std::string reason;  ///< why it was not met or not valid; else empty
};

/// All steps at one rate together.
struct CapacityRate {
  double rate = 0;
  std::string decision;  ///< "kept", "missed", or "open": neither could be shown
  std::uint64_t samples = 0, steps = 0;
  std::uint64_t missed_steps = 0;   ///< that alone missed the objective
  std::uint64_t invalid_steps = 0;  ///< these can show that it is kept, not that it is missed
  /// Where the objective's figure lies, with a confidence of 95 % on either side; not a number on a
  /// side that the steps do not show. Of several objectives, of one that decides.
  double figure_low = 0, figure_high = 0;
  double rho = 0;  ///< share of the time for which a lock was taken: held, or being handed over
  Distribution acquire;
  std::string reason;  ///< of the decision, with figures
};

/// The highest load at which a strategy keeps an objective.
struct Capacity {
  std::string strategy, objective;
  std::uint64_t clients = 1, keys = 1;
  /// Sections per second: the highest that kept it, 0 if none did, and the lowest that missed it,
  /// not a number if none did. What lies in between could not be decided.
  double lowest = 0, highest = 0;
  std::optional<double> ceiling;  ///< 1 / hold over all keys; nothing without a hold
  std::string limit;              ///< "lock", "store", "generator", "clients" or "unknown"
  std::string limit_reason;
  bool confirmed = false;  ///< `lowest` and `highest` are close, and were measured again
  /// Whether a run broke exclusion, promised or not; empty: no run was audited.
  std::optional<bool> violated;
  /// The planned rate divided by `lowest`, and by what share the load may grow until there.
  std::optional<double> planned_rate, utilisation, headroom;
  std::vector<CapacityRate> rates;  ///< growing
  std::vector<CapacityStep> steps;  ///< in the order in which they were made

  /// Whether that was shown: by a miss at a lower rate, or by the ceiling.
  bool planned_too_high() const {
    return planned_rate && (*planned_rate >= highest || (ceiling && *planned_rate >= *ceiling));
  }
  /// What was found at that rate; null if it was not measured.
  const CapacityRate* at(double rate) const {
    const auto found = std::find_if(rates.begin(), rates.end(),
                                    [rate](const CapacityRate& one) { return one.rate == rate; });
    return found == rates.end() ? nullptr : &*found;
  }
};

}  // namespace lockbench::results

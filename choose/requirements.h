#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/stats/threshold.h"
#include "strategies/duration.h"

namespace lockbench::choose {

/// A fault that the lock must survive, in the user's words.
struct Survival {
  std::string word;
  std::vector<std::string> scenarios;  ///< of hazards, that stand for it: all must be survived
  /// Used instead if the protected resource checks fencing numbers; empty: that does not help.
  std::vector<std::string> fenced{};
  /// Used instead if none of them applies to a strategy; empty: there is no substitute.
  std::vector<std::string> otherwise{};
  /// A server is lost for good, with everything that is stored only there.
  bool takes_a_server = false;
};

/// What a user requires of a lock. Unset fields are no requirement.
struct Requirements {
  std::vector<std::string> stores;  ///< at hand; none: any
  std::vector<Survival> survive;
  std::optional<Duration> work_p50, work_p99;  ///< how long a section's work takes
  std::optional<int> clients;                  ///< that want the lock
  std::optional<double> rate;                  ///< sections per second, of all clients together
  std::vector<results::Threshold> slos;
  /// Whether the protected resource rejects late writes by their fencing number; nothing: unknown,
  /// so the answer says what depends on it.
  std::optional<bool> fencing_resource;
  bool fair = false, reentrant = false, shared = false;
  std::string rank_by{};  ///< path of a run's figure; empty: the one that fits the requirements

  bool none() const {
    return stores.empty() && survive.empty() && !work_p50 && !work_p99 && !clients && !rate &&
           slos.empty() && !fencing_resource && !fair && !reentrant && !shared;
  }
};

}  // namespace lockbench::choose

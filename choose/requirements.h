#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/stats/threshold.h"
#include "strategies/duration.h"

namespace lockbench::choose {

/// A fault that the lock must survive, in the user's word.
struct Survival {
  std::string word;
  std::vector<std::string> scenarios;  ///< of hazards, that stand for it: all must be survived
  /// In their place, where the protected resource checks fencing numbers; empty: that is no help.
  std::vector<std::string> fenced{};
  /// In their place where none of them concerns a strategy; empty: nothing tells.
  std::vector<std::string> otherwise{};
  /// A server is gone for good: what lives on one alone is gone with it.
  bool takes_a_server = false;
};

/// What somebody asks of a lock. What is not said is not required.
struct Requirements {
  std::vector<std::string> stores;  ///< at hand; none: any
  std::vector<Survival> survive;
  std::optional<Duration> work_p50, work_p99;  ///< how long a section's work takes
  std::optional<int> clients;                  ///< that want the lock
  std::optional<double> rate;                  ///< sections per second, of all clients together
  std::vector<results::Threshold> slos;
  /// Whether the protected resource can turn a late write away by its fencing number; nothing: it
  /// is not known, so that what depends on it is said.
  std::optional<bool> fencing_resource;
  bool fair = false, reentrant = false, shared = false;
  std::string rank_by{};  ///< path of a run's figure; empty: the one that fits the requirements

  bool none() const {
    return stores.empty() && survive.empty() && !work_p50 && !work_p99 && !clients && !rate &&
           slos.empty() && !fencing_resource && !fair && !reentrant && !shared;
  }
};

}  // namespace lockbench::choose

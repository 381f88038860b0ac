#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/file/distribution.h"

namespace lockbench::results {

// The part of the result file that `lockbench capacity` writes. See model.h.

/// One run on the way to a capacity. Shares of CPU: the servers' of one core, not a number where it
/// is not known, the generator's of all cores.
struct CapacityStep {
  std::string purpose;  ///< "climb", "bisect", "confirm-at" or "confirm-above"
  double rate = 0;      ///< offered sections per second
  double achieved = 0;
  Distribution acquire;
  bool met = false;   ///< the objective was kept and all that was offered was served
  bool valid = true;  ///< what the generator says of itself
  double server_cpu_share = 0, generator_cpu_share = 0;
  std::string reason;  ///< why it was not met or not valid; else empty
};

/// A closed loop of so many clients, or over so many keys.
struct CapacitySweepPoint {
  std::string over;  ///< "clients" or "keys"
  std::uint64_t at = 1;
  double sections_per_second = 0;
  Distribution acquire;
};

/// What a model says of a load that it was not fitted to.
struct Prediction {
  std::string at;      ///< "rate=400", "clients=64", "clients=2000,rtt=0.001"
  std::string figure;  ///< "acquire.p99", "sections_per_second"
  double predicted = 0;
  std::optional<double> measured;  ///< nothing where that load was not run
  std::optional<double> error;     ///< share of what was measured; above 0: predicted too high
  std::string unit;                ///< "s" or "1/s"
  bool extrapolated = false;       ///< beyond all that was measured
};

struct CapacityModel {
  std::string name;  ///< "queue" or "usl"
  std::map<std::string, double> parameters;
  std::vector<Prediction> predictions;
};

/// The highest load that a strategy bears with an objective kept.
struct Capacity {
  std::string strategy, objective;
  std::uint64_t clients = 1, keys = 1;
  /// Sections per second: the highest that kept it, 0 if none did, and the lowest that did not, not
  /// a number if none failed.
  double lowest = 0, highest = 0;
  std::string limit;  ///< "lock", "store", "generator", "clients" or "unknown"
  std::string limit_reason;
  bool confirmed = false;  ///< by repeated runs at both ends
  /// Whether exclusion was broken in some of the runs, promised or not; nothing: nobody knows.
  std::optional<bool> violated;
  /// Of the planned rate: its share of `lowest`, and by what share the load may grow until there.
  std::optional<double> planned_rate, utilisation, headroom;
  std::vector<CapacityStep> steps;  ///< in the order in which they were made
  std::vector<CapacitySweepPoint> sweep;
  std::vector<CapacityModel> models;
};

}  // namespace lockbench::results

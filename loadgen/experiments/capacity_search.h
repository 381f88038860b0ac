#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace lockbench::loadgen {

/// How the highest rate that keeps an objective is looked for. Rates in sections per second.
struct CapacitySearchPlan {
  double first_rate = 100;  ///< above 0; the nearer to the answer the fewer steps
  double lowest_rate = 1;   ///< below it nothing is tried
  double highest_rate = 1e7;
  double precision = 0.05;  ///< how far apart the ends of the interval may be
  int confirmations = 3;    ///< runs at each end; most of them decide
  int most_steps = 30;
  std::uint64_t seed = 1;  ///< of the order of confirming runs
};

/// What the rates say that were tried. An answer lies in between.
struct CapacityInterval {
  double held = 0;  ///< the highest rate that held below all that failed; 0 if there is none
  double failed = std::numeric_limits<double>::quiet_NaN();  ///< the lowest that failed, if any
  bool confirmed = false;  ///< by as many runs at both ends as were wanted
};

/// Climbs by doubling, halves the interval, and confirms both of its ends in a mixed order; what a
/// confirmation contradicts is looked for anew. For one thread.
class CapacitySearch {
 public:
  /// Whether the objective was kept at that rate; nothing: there is to be no further step. The
  /// purpose is "climb", "bisect", "confirm-at" or "confirm-above".
  using Measure = std::function<std::optional<bool>(std::string_view purpose, double rate)>;

  CapacitySearch(CapacitySearchPlan plan, Measure measure);

  /// Ends after `most_steps` at the latest.
  CapacityInterval run();

 private:
  struct Tally {
    int runs = 0, met = 0;
    int confirming = 0, confirming_met = 0;

    /// By the confirming runs where there are some: they were not chosen for how they came out.
    bool holds() const { return confirming > 0 ? 2 * confirming_met > confirming : 2 * met > runs; }
  };

  CapacityInterval interval() const;
  /// The rate to try next where the interval is open or too wide.
  std::optional<double> next_rate(const CapacityInterval& interval) const;
  /// Confirming runs that the ends still need.
  std::vector<bool> missing(const CapacityInterval& interval);
  bool try_rate(std::string_view purpose, double rate, bool confirms);
  bool confirm(const CapacityInterval& interval, const std::vector<bool>& order);

  const CapacitySearchPlan plan_;
  const Measure measure_;
  std::mt19937_64 random_;
  std::map<double, Tally> tallies_;
  int steps_ = 0;
};

}  // namespace lockbench::loadgen

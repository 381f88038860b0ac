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

/// Bounds of the search for the highest rate that keeps an objective. Rates in sections per second.
struct CapacitySearchPlan {
  double first_rate = 100;  ///< above 0; fewer steps if it is near the answer
  double lowest_rate = 1;   ///< no lower rate is tried
  double highest_rate = 1e7;
  double precision = 0.05;  ///< largest relative width of the interval
  int confirmations = 3;    ///< runs at each end; the majority decides
  int most_steps = 30;
  std::uint64_t seed = 1;  ///< of the order of confirming runs
};

/// The result of the rates that were tried: the capacity lies in between.
struct CapacityInterval {
  double held = 0;  ///< the highest rate that kept it below all that did not; 0 if there is none
  double failed = std::numeric_limits<double>::quiet_NaN();  ///< the lowest that failed, if any
  bool confirmed = false;  ///< by `confirmations` runs at both ends
};

/// Doubles the rate, bisects the interval, and confirms both of its ends in random order. Resumes
/// the search if a confirmation contradicts the interval. For one thread.
class CapacitySearch {
 public:
  /// Returns whether the objective was kept at that rate; nothing ends the search. The purpose is
  /// "climb", "bisect", "confirm-at" or "confirm-above".
  using Measure = std::function<std::optional<bool>(std::string_view purpose, double rate)>;

  CapacitySearch(CapacitySearchPlan plan, Measure measure);

  /// Makes at most `most_steps` steps.
  CapacityInterval run();

 private:
  struct Tally {
    int runs = 0, met = 0;
    int confirming = 0, confirming_met = 0;

    /// Confirming runs decide if there are any, as they were not chosen by their outcome.
    bool holds() const { return confirming > 0 ? 2 * confirming_met > confirming : 2 * met > runs; }
  };

  CapacityInterval interval() const;
  /// The rate to try next if the interval is open or too wide.
  std::optional<double> next_rate(const CapacityInterval& interval) const;
  /// The confirming runs that are still missing, in random order; true: at the end that held.
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

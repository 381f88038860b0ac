#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "results/stats/threshold.h"

namespace lockbench::loadgen {

/// Bounds of the search for the highest rate that keeps an objective. Rates in sections per second.
struct CapacitySearchPlan {
  double first_rate = 100;  ///< above 0; less time is needed if it is near the answer
  double ceiling = std::numeric_limits<double>::infinity();  ///< lower rates only are tried
  std::optional<double> planned;  ///< tried where the rates so far leave it open
  double precision = 0.1;         ///< relative width of the interval that is narrow enough
  double seconds = 300;           ///< no step begins that would end later
};

/// The result of the rates that were tried: the capacity lies in between.
struct CapacityInterval {
  double kept = 0;  ///< the highest that kept it below all that missed it; 0 if there is none
  double missed = std::numeric_limits<double>::quiet_NaN();  ///< the lowest that did, if any
  bool confirmed = false;  ///< narrow enough, and measured again at both ends
};

/// Tries rates between the highest that is kept and the lowest that is missed. A rate that stays
/// open for too long is left, and the search goes on below it for one that is kept and above it for
/// one that is missed. Once the missed rate is at most twice the kept one, the kept one is measured
/// for a sixth of the time before the search goes on. In the end it measures both again, as often
/// as it took to decide them, or in the last fifth of the time: all steps at a rate decide
/// together, so a miss counts whenever it fell. For one thread.
class CapacitySearch {
 public:
  struct Step {
    results::Decision decision = results::Decision::open;  ///< of all steps at this rate
    double seconds = 0;                                    ///< that this one took
    bool enough = true;     ///< all steps at this rate could have decided it
    bool hindered = false;  ///< they would have, but some were disturbed: try another rate first
  };
  /// Makes a step at that rate; nothing ends the search.
  using Measure = std::function<std::optional<Step>(double rate)>;
  /// How long a step at that rate will take.
  using Estimate = std::function<double(double rate)>;

  CapacitySearch(CapacitySearchPlan plan, Measure measure, Estimate estimate);

  CapacityInterval run();

 private:
  /// The latest step at a rate, with the time of all.
  struct Tally : Step {
    int steps = 0;
    int confirming = 0;  ///< of these
  };
  struct Next {
    double rate = 0;
    bool confirms = false;
  };

  CapacityInterval interval() const;
  double upper_end(const CapacityInterval& found) const;
  bool is_narrow(const CapacityInterval& found) const;
  std::optional<Next> next() const;
  /// The end that was measured again less often; nothing if both were often enough. `forever`:
  /// that is never so.
  std::optional<Next> confirmation(const CapacityInterval& found, bool forever) const;
  /// A rate between the ends.
  double undecided(const CapacityInterval& found) const;
  double between(double below, double above) const;

  CapacitySearchPlan plan_;
  const Measure measure_;
  const Estimate estimate_;
  std::map<double, Tally> tallies_;
  double elapsed_ = 0;
};

}  // namespace lockbench::loadgen

#pragma once

#include <map>
#include <string>
#include <vector>

#include "hazards/player.h"

namespace lockbench::hazards {

/// One cell, played several times.
struct Repeated {
  /// The first play whose outcome is not the declared one; else the first that was played at all.
  Cell shown;
  std::map<HazardOutcome, int> outcomes;  ///< and how often each was seen
  /// From when another had the lock to when its holder stopped to believe in it, in seconds,
  /// growing; infinite where it went on. One for each play that could see it.
  std::vector<double> belief_gaps;
  std::vector<std::string> failures;  ///< of plays that broke off

  bool unstable() const { return outcomes.size() > 1; }
  /// "safe 19 times, double-grant once"
  std::string tally() const;
};

/// The same cells again and again, one round after the other.
std::vector<Cell> repeated(const std::vector<Cell>& cells, int times);

/// Plays in rounds of so many cells, as repeated() makes them, brought together by cell.
std::vector<Repeated> gather(const std::vector<Cell>& plays, std::size_t cells);

}  // namespace lockbench::hazards

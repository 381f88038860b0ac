#pragma once

#include <map>
#include <string>
#include <vector>

#include "hazards/player.h"

namespace lockbench::hazards {

/// One cell, played several times.
struct Repeated {
  /// The first play with an undeclared outcome; otherwise the first that ended with an outcome.
  Cell shown;
  std::map<HazardOutcome, int> outcomes;  ///< and how often each was observed
  std::vector<std::string> failures;      ///< reasons of plays that broke off

  /// A disturbed play differs from no other.
  bool unstable() const;
  /// "safe 19 times, double-grant once"
  std::string tally() const;
};

/// All cells once per round, `times` rounds.
std::vector<Cell> repeated(const std::vector<Cell>& cells, int times);

/// Groups plays in the order of repeated() by cell.
std::vector<Repeated> gather(const std::vector<Cell>& plays, std::size_t cells);

}  // namespace lockbench::hazards

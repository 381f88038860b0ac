#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "hazards/play.h"

namespace lockbench::hazards {

/// One point of a dose and its response: a scenario's fault, drawn out until the section, from its
/// grant to its write, is `ratio` times as long as the lock lasts; played several times, the
/// contender arriving at random moments.
struct DosePoint {
  const Scenario* scenario = nullptr;
  const Descriptor* strategy = nullptr;
  double ratio = 1;
  Duration ttl{};  ///< that was granted
  int plays = 0;
  int violated = 0;      ///< as the oracle saw it: an update lost, or two inside
  int late = 0;          ///< plays whose section came out longer than asked, and count for nothing
  std::string reason{};  ///< why it was not played, or broke off
  bool failed = false;   ///< it broke off: something is wrong with us or a server

  double violated_share() const;
  /// Whether the strategy should not have been violated at all: it declares so, or the lock had not
  /// run out yet. Or whether it should have been, and never was: it declares so, and the lock had
  /// run out long ago.
  bool surprises() const;
  /// Of one that surprises: "3 of 10 violated, which should not be"
  std::string surprise() const;
};

struct DosePlan {
  int plays = 10;  ///< of each point; fewer where they would take too long
  int at_once = 1;
  std::uint64_t seed = 1;  ///< of the moments at which contenders arrive
};

/// Dense where the lock runs out.
const std::vector<double>& usual_ratios();

/// Those of these scenarios that can be given in doses, for the strategies that they concern; the
/// longest plays first.
std::vector<DosePoint> dose_points(const std::vector<const Scenario*>& scenarios,
                                   const std::vector<const Descriptor*>& strategies,
                                   std::vector<double> ratios);

/// How many of the wanted plays fit into the time that one point may take: two at the least.
int plays_that_fit(int wanted, Duration one);

/// Plays all points, so many side by side; `on_done` is called for each, one at a time. A stop lets
/// the plays under way end: their points keep what was seen. Never throws for what goes wrong on
/// stage: that is the point's reason.
void measure_doses(House& house, std::vector<DosePoint>& points, const DosePlan& plan,
                   const std::function<void(const DosePoint&)>& on_done,
                   const std::stop_token& stop);

}  // namespace lockbench::hazards

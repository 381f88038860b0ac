#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "hazards/play.h"

namespace lockbench::hazards {

/// One point of a dose-response curve: a scenario's fault, prolonged until the section, from grant
/// to write, lasts `ratio` × TTL. It is played several times; the contender arrives at random
/// times.
struct DosePoint {
  const Scenario* scenario = nullptr;
  const Descriptor* strategy = nullptr;
  double ratio = 1;
  Duration ttl{};  ///< as granted
  int plays = 0;
  int violated = 0;      ///< plays with a lost update or two holders
  int late = 0;          ///< plays whose section was longer than requested; not counted
  std::string reason{};  ///< why it was not played or broke off
  bool failed = false;   ///< it broke off: a server or lockbench itself failed

  double violated_share() const;
  /// True for a violation although the strategy withstands the fault or the lock had not expired
  /// yet, and for no violation although one is declared and the lock had expired long before.
  bool surprises() const;
  /// For a point that surprises: "3 of 10 violated; none expected"
  std::string surprise() const;
};

struct DosePlan {
  int plays = 10;  ///< per point; fewer if they would take too long
  int at_once = 1;
  std::uint64_t seed = 1;  ///< for the contenders' arrival times
};

/// Dense around the moment of expiry.
const std::vector<double>& usual_ratios();

/// Points for the scenarios with an adjustable duration and the strategies that they apply to; the
/// longest plays first.
std::vector<DosePoint> dose_points(const std::vector<const Scenario*>& scenarios,
                                   const std::vector<const Descriptor*>& strategies,
                                   std::vector<double> ratios);

/// How many of the requested plays fit into the time budget of one point: at least two.
int plays_that_fit(int wanted, Duration one);

/// Plays all points, `plan.at_once` in parallel; `on_done` is called for each, one at a time. After
/// a stop request running plays end and their points keep their results. Does not throw if a server
/// or client fails: the point's reason says so.
void measure_doses(ServerPool& servers, std::vector<DosePoint>& points, const DosePlan& plan,
                   const std::function<void(const DosePoint&)>& on_done,
                   const std::stop_token& stop);

}  // namespace lockbench::hazards

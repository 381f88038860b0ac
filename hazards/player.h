#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "hazards/play.h"
#include "hazards/scenario.h"

namespace lockbench::hazards {

/// One cell of the matrix, and what became of it.
struct Cell {
  const Scenario* scenario = nullptr;
  const Descriptor* strategy = nullptr;
  HazardOutcome expected = HazardOutcome::safe;
  /// Nothing: it could not be played, or has not been yet.
  std::optional<HazardOutcome> observed{};
  /// What was seen, why it does not apply, or why it could not be played.
  std::string reason{};
  bool failed = false;  ///< the play broke off: something is wrong with us or a server
  std::map<std::string, Fact> evidence{};
  std::vector<Timeline::Entry> timeline{};
  TimePoint began{};
  Duration took{};

  bool played() const { return observed.has_value(); }
  bool agrees() const { return observed == expected; }
};

/// The beginning of a key that no other play has, as Play wants it.
std::string fresh_key();

/// What is expected of a scenario and a strategy, not played yet.
Cell make_cell(const Scenario& scenario, const Descriptor& strategy);

/// Plays one cell. Never throws for what goes wrong on stage: that is the cell's reason.
Cell play(House& house, const Scenario& scenario, const Descriptor& strategy);

/// Plays all cells, `at_once` of them side by side; `on_done` is called for each, one at a time. A
/// stop lets those that are being played end, and begins no other.
void play_all(House& house, std::vector<Cell>& cells, int at_once,
              const std::function<void(const Cell&)>& on_done, const std::stop_token& stop);

}  // namespace lockbench::hazards

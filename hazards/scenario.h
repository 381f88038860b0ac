#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hazards/stage.h"
#include "strategies/descriptor.h"

namespace lockbench::hazards {

class Play;

/// What was seen, and why in plain words.
struct Verdict {
  HazardOutcome outcome = HazardOutcome::safe;
  std::string reason;
};

/// A fault that can be given in doses: how the section is drawn out, and which oracle is asked.
enum class Dose {
  stall,  ///< the holder stands still: does a stale write reach the counter?
  hold,   ///< its work takes long: are two inside?
};

/// One fault as a small play. Knows strategies by their traits only.
struct Scenario {
  std::string_view name;
  std::string_view question;  ///< one line
  /// What a strategy is expected to show whose descriptor says nothing: `safe`, or `recovers`.
  HazardOutcome unless_declared = HazardOutcome::safe;
  Ground ground = Ground::shared;
  /// Among those that decide most.
  bool quick = false;
  /// For controls too, which promise nothing that a fault could break.
  bool for_controls = false;
  /// How it can be given in doses; nothing: it is there or it is not.
  std::optional<Dose> dose{};
  /// Why a strategy cannot meet this fault; nothing if it can. May be empty.
  std::function<std::optional<std::string>(const Descriptor&)> exempts{};
  std::function<Verdict(Play&)> play;
};

/// Puts a scenario into the registry when the program starts; stands at the end of its own file.
class ScenarioRegistration {
 public:
  explicit ScenarioRegistration(Scenario scenario);
};

/// By name.
std::vector<const Scenario*> all_scenarios();
/// Null if there is none of that name.
const Scenario* find_scenario(std::string_view name);

/// Why the scenario does not concern the strategy; nothing if it does.
std::optional<std::string> not_applicable(const Scenario& scenario, const Descriptor& strategy);
/// What the strategy declares, or is expected to show without declaring anything.
HazardOutcome expected_outcome(const Scenario& scenario, const Descriptor& strategy);

}  // namespace lockbench::hazards

#include "hazards/scenario.h"

namespace lockbench::hazards {

std::vector<const Scenario*> all_scenarios() { return ScenarioRegistration::all(); }

const Scenario* find_scenario(std::string_view name) { return ScenarioRegistration::find(name); }

std::optional<std::string> not_applicable(const Scenario& scenario, const Descriptor& strategy) {
  if (!scenario.for_controls) {
    if (!strategy.traits.promises_exclusion) return "a control: it promises no exclusion";
    if (strategy.traits.one_process) return "it works within one process only";
  }
  return scenario.exempts ? scenario.exempts(strategy) : std::nullopt;
}

bool never_gets_there(const Scenario& scenario, const Traits& traits) {
  using Needs = Scenario::Needs;
  if (scenario.needs == Needs::nothing) return false;
  if (traits.expiry == Expiry::none || traits.ends_with_connection) return true;
  return scenario.needs == Needs::expiry_despite_contenders && traits.prolonged_by_contenders;
}

HazardOutcome expected_outcome(const Scenario& scenario, const Descriptor& strategy) {
  if (never_gets_there(scenario, strategy.traits)) return HazardOutcome::not_applicable;
  for (const std::string_view name : {scenario.name, scenario.like}) {
    for (const KnownHazard& known : strategy.hazards) {
      if (known.scenario == name) return known.outcome;
    }
  }
  return scenario.default_outcome;
}

}  // namespace lockbench::hazards

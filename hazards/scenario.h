#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deployment/private_store.h"
#include "strategies/registry.h"

namespace lockbench::hazards {

using deployment::Limit;
using deployment::NotStarted;
using deployment::PrivateStore;
using deployment::Setup;

class Play;

/// The observed outcome and a one-line explanation.
struct Verdict {
  HazardOutcome outcome = HazardOutcome::safe;
  std::string reason;
};

/// One fault as a small play. It knows strategies only by their traits.
struct Scenario {
  /// What must happen in a play before it can answer its question. The scenario is `not-applicable`
  /// to locks with which that never happens.
  enum class Needs {
    nothing,
    expiry,                    ///< the lock expires
    expiry_despite_contenders  ///< it expires although a contender keeps asking for it
  };

  std::string_view name;
  std::string_view question;  ///< one line
  /// The expected outcome for strategies that declare nothing: `safe` or `recovers`.
  HazardOutcome default_outcome = HazardOutcome::safe;
  /// The scenario whose declared outcome also counts here, unless this one is declared itself.
  std::string_view like{};
  Setup setup = Setup::shared;
  Needs needs = Needs::nothing;
  /// Finds the lock in the store under the key of lockbench's own strategies: not played for client
  /// programs.
  bool by_key = false;
  /// Part of `hazards --quick`.
  bool quick = false;
  /// Also played for controls, which promise no exclusion.
  bool for_controls = false;
  /// Returns the reason if the scenario does not apply to a strategy. May be unset.
  std::function<std::optional<std::string>(const Descriptor&)> exempts{};
  std::function<Verdict(Play&)> play;
};

/// For Scenario::exempts: the scenario applies to these strategies only; `why_not` is the reason
/// for the others.
template <class Applies>
auto only_if(Applies applies, std::string_view why_not) {
  return [=](const Descriptor& strategy) -> std::optional<std::string> {
    if (applies(strategy)) return std::nullopt;
    return std::string(why_not);
  };
}

/// Registers the scenarios of a file, at its end.
struct ScenarioRegistration {
  explicit ScenarioRegistration(const std::vector<Scenario>& scenarios) {
    for (const Scenario& scenario : scenarios) Named<Scenario>{scenario};
  }
};

/// Sorted by name.
inline std::vector<const Scenario*> all_scenarios() { return Named<Scenario>::all(); }
/// Null if there is none of that name.
inline const Scenario* find_scenario(std::string_view name) { return Named<Scenario>::find(name); }

/// The reason why the scenario does not apply to the strategy; empty if it does.
std::optional<std::string> not_applicable(const Scenario& scenario, const Descriptor& strategy);
/// Whether, by the strategy's traits, the scenario's needs are never met.
bool never_gets_there(const Scenario& scenario, const Traits& traits);
/// `not-applicable` if never_gets_there(), else the outcome that the strategy declares, or else the
/// scenario's default.
HazardOutcome expected_outcome(const Scenario& scenario, const Descriptor& strategy);

}  // namespace lockbench::hazards

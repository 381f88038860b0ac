#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deployment/private_store.h"
#include "strategies/named.h"

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
  /// What a play must see before it can ask its question. It is `not-applicable` to locks that
  /// never get there.
  enum class Needs {
    nothing,
    expiry,                    ///< the lock runs out
    expiry_despite_contenders  ///< it runs out although a contender asks for it all the time
  };

  std::string_view name;
  std::string_view question;  ///< one line
  /// The expected outcome for strategies that declare nothing: `safe` or `recovers`.
  HazardOutcome default_outcome = HazardOutcome::safe;
  /// The scenario whose declared outcome counts for this one too, unless it has one of its own.
  std::string_view like{};
  Setup setup = Setup::shared;
  Needs needs = Needs::nothing;
  /// Part of `hazards --quick`.
  bool quick = false;
  /// Also played for controls, which promise no exclusion.
  bool for_controls = false;
  /// Returns the reason if the scenario does not apply to a strategy. May be unset.
  std::function<std::optional<std::string>(const Descriptor&)> exempts{};
  std::function<Verdict(Play&)> play;
};

/// For Scenario::exempts: the scenario is for these strategies only, `why_not` for the others.
template <class Applies>
auto only_if(Applies applies, std::string_view why_not) {
  return [=](const Descriptor& strategy) -> std::optional<std::string> {
    if (applies(strategy)) return std::nullopt;
    return std::string(why_not);
  };
}

/// Stands at the end of a file of scenarios.
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
/// Whether the lock never gets to where the scenario's question begins, by the strategy's traits.
bool never_gets_there(const Scenario& scenario, const Traits& traits);
/// `not-applicable` if it never gets there, what the strategy declares, or else the scenario's
/// default outcome.
HazardOutcome expected_outcome(const Scenario& scenario, const Descriptor& strategy);

}  // namespace lockbench::hazards

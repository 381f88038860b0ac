#pragma once

#include "hazards/play.h"
#include "hazards/player.h"

namespace lockbench::hazards::test {

/// Opens on first use and closes with the program; its clients also know the tests' strategies.
/// Throws std::runtime_error if it cannot be opened.
ServerPool& server_pool();

/// The scenario with this name. Throws std::runtime_error if there is none.
const Scenario& scenario(std::string_view name);
const Descriptor& strategy(std::string_view name);

/// Servers for the plays of a strategy. Throws std::runtime_error if there are none.
std::shared_ptr<PrivateStore> store_for(std::string_view strategy_name,
                                        Setup setup = Setup::shared);
/// A play on such servers, with its own key.
struct Stage : Play {
  explicit Stage(std::string_view strategy_name, Setup setup = Setup::shared)
      : Play(server_pool(), store_for(strategy_name, setup), strategy(strategy_name)) {}
};

/// Plays the cell until a play is undisturbed, for at most kPatience; then the test fails. Repeats
/// only plays whose own steps came late, which have no verdict; never repeats a verdict or a
/// failure.
Cell undisturbed(const Scenario& scenario, const Descriptor& strategy);
inline Cell undisturbed(std::string_view scenario_name, std::string_view strategy_name) {
  return undisturbed(scenario(scenario_name), strategy(strategy_name));
}

/// The whole play as text, for failing tests.
std::string description_of(const Cell& cell);

}  // namespace lockbench::hazards::test

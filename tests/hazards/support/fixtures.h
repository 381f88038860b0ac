#pragma once

#include "hazards/play.h"
#include "hazards/player.h"

namespace lockbench::hazards::test {

/// Opened on first use, closed with the program; its clients know the tests' own strategies too.
/// Throws std::runtime_error if it cannot be opened.
ServerPool& server_pool();

/// Names of things that must be there; std::runtime_error if they are not.
const Scenario& scenario(std::string_view name);
const Descriptor& strategy(std::string_view name);

/// Servers for the plays of a strategy. Throws std::runtime_error if there are none.
std::shared_ptr<PrivateStore> store_for(std::string_view strategy_name,
                                        Setup setup = Setup::shared);
/// A play on such servers, with a key of its own.
struct Stage : Play {
  explicit Stage(std::string_view strategy_name, Setup setup = Setup::shared)
      : Play(server_pool(), store_for(strategy_name, setup), strategy(strategy_name)) {}
};

/// Plays the cell until nothing disturbs it, for as long as a test waits for anything; the test
/// fails if it always was. Only a play whose own steps came late is repeated, and it has judged
/// nothing: a verdict or a failure never is.
Cell undisturbed(const Scenario& scenario, const Descriptor& strategy);
inline Cell undisturbed(std::string_view scenario_name, std::string_view strategy_name) {
  return undisturbed(scenario(scenario_name), strategy(strategy_name));
}

/// The whole play as text: what to look at when a test fails.
std::string description_of(const Cell& cell);

}  // namespace lockbench::hazards::test

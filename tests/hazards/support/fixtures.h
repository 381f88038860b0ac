#pragma once

#include "hazards/player.h"

namespace lockbench::hazards::test {

/// Opened on first use, closed with the program; its clients know the tests' own strategies too.
/// Throws std::runtime_error if it cannot be opened.
ServerPool& server_pool();

/// Names of things that must be there; std::runtime_error if they are not.
const Scenario& scenario(std::string_view name);
const Descriptor& strategy(std::string_view name);

/// The whole play as text: what to look at when a test fails.
std::string description_of(const Cell& cell);

}  // namespace lockbench::hazards::test

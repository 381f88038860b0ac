#pragma once

#include <cstdint>
#include <string>

#include "hazards/player.h"

namespace lockbench::hazards {

/// Why plays of this strategy cannot be simulated; empty: they can.
std::string why_not_simulated(const Descriptor& strategy);

/// As play(), but on simulated machines and in virtual time, which takes milliseconds: one thread,
/// no socket, no process. The same seed plays the same. What the simulation cannot have is
/// `not-played`. Thread-safe.
Cell play_simulated(const Scenario& scenario, const Descriptor& strategy, std::uint64_t seed);

}  // namespace lockbench::hazards

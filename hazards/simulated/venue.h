#pragma once

#include <cstdint>

#include "hazards/player.h"

namespace lockbench::hazards {

/// As play(), but on simulated machines and in virtual time, which takes milliseconds: one thread,
/// no socket, no process; for strategies that simulate::why_not() lets pass. The same seed plays
/// the same. What the simulation cannot have is `not-played`. Thread-safe.
Cell play_simulated(const Scenario& scenario, const Descriptor& strategy, std::uint64_t seed);

}  // namespace lockbench::hazards

#pragma once

#include <string_view>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench::test {

/// A lock that is declared as sound but has this one flaw, such as "lets_two_in". Not in the
/// registry; the reference is valid until the program ends. Thread-safe. Throws std::out_of_range
/// for an unknown flaw.
const Descriptor& broken_lock(std::string_view flaw);
/// The flaws of all of them.
std::vector<std::string_view> all_flaws();

}  // namespace lockbench::test

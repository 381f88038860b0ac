#pragma once

#include <string_view>

#include "strategies/descriptor.h"

namespace lockbench::test {

/// A lock that declares what a sound one does, and does not keep it in one way, such as
/// "lets_two_in". Not in the registry; the reference is good until the program ends. Thread-safe.
/// Throws std::out_of_range for a flaw that none has.
const Descriptor& broken_lock(std::string_view flaw);

}  // namespace lockbench::test

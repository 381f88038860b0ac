#pragma once

#include <chrono>

namespace lockbench {

/// Whatever lockbench puts in a store ends by itself this long after it was last used, for what a
/// killed process leaves: also what has no time to live of its own, such as fencing numbers and the
/// locks of strategies without TTL. The scripts have the same number in milliseconds.
inline constexpr std::chrono::hours kKeptFor{24};

}  // namespace lockbench

#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace lockbench::hazards {

/// Calls `work` with 0, 1, … `count` - 1, each once and in this order, on so many threads. A stop
/// lets those that are under way end, and begins no other. `work` does not throw.
void side_by_side(std::size_t count, int at_once, const std::function<void(std::size_t)>& work,
                  const std::stop_token& stop);

}  // namespace lockbench::hazards

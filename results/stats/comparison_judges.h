#pragma once

#include <string>
#include <vector>

#include "results/stats/compared_items.h"

namespace lockbench::results {

/// Gives the difference of each item, all of which both sides have, its interval and finding, so
/// that all hold together with this confidence. Returns one line that says why repetitions can
/// show nothing, and what would; empty where they can.
std::string judge(const std::vector<Item>& items, double confidence,
                  std::vector<Difference>& differences);

}  // namespace lockbench::results

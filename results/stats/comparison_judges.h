#pragma once

#include <string>
#include <vector>

#include "results/stats/compared_items.h"

namespace lockbench::results {

/// Sets the interval and finding of each item's difference, simultaneously with this confidence.
/// Both sides must have every item. Returns one line that says why no difference can be
/// significant, and what would help; empty if one can.
std::string judge(const std::vector<Item>& items, double confidence,
                  std::vector<Difference>& differences);

}  // namespace lockbench::results

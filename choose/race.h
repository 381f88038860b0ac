#pragma once

#include <vector>

namespace lockbench::choose {

// Measuring several strategies in rounds: who can still win. `values[i]` are those of strategy i by
// round, none below 0; the lowest wins.

/// Whether each strategy can still be of the first tier. One without a value can.
std::vector<bool> still_in(const std::vector<std::vector<double>>& values);

/// Whether further rounds would tell no more: all that are still in, or the only one, had enough.
bool is_settled(const std::vector<std::vector<double>>& values);

}  // namespace lockbench::choose

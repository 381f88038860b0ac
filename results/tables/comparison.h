#pragma once

#include <string>
#include <vector>

#include "results/stats/comparison.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// One row for each figure of each strategy. The lines tell which strategies only one side has, and
/// what limits the findings.
Block comparison_block(const ResultComparison& comparison);

/// One line for each gate that is not kept; of those that cannot be excluded, with the change that
/// could have been found.
std::vector<std::string> gate_lines(const ResultComparison& comparison);

/// Durations in seconds, null where there is nothing.
std::string to_json(const ResultComparison& comparison);

}  // namespace lockbench::results

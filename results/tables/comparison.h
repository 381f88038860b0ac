#pragma once

#include <string>
#include <vector>

#include "results/stats/comparison.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// One row for each figure of each strategy.
Table comparison_table(const ResultComparison& comparison);
/// What to know besides the figures, in a line each: strategies of one side only, what limits the
/// findings.
std::vector<std::string> notes(const ResultComparison& comparison);

/// One line for each gate that is not kept; of those that cannot be excluded, with the change that
/// could have been found.
std::vector<std::string> gate_lines(const ResultComparison& comparison);

/// Durations in seconds, null where there is nothing.
std::string to_json(const ResultComparison& comparison);

}  // namespace lockbench::results

#pragma once

#include <string>

#include "results/stats/comparison.h"
#include "results/tables/experiment_sheet.h"

namespace lockbench::results {

/// For people: units as in the run table, a row for each figure of each strategy.
TextSheet sheet_of(const ResultComparison& comparison);
/// What has to be said beside it, in a line each: strategies of one side, what limits the findings.
std::vector<std::string> readings(const ResultComparison& comparison);

/// For programs: full precision, durations in seconds, empty or null where there is nothing.
std::string to_csv(const ResultComparison& comparison);
std::string to_json(const ResultComparison& comparison);

}  // namespace lockbench::results

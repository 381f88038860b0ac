#pragma once

#include <string>
#include <vector>

#include "results/tables/experiment_sheet.h"

namespace lockbench::results {

/// Of so many plays, in any order; infinite where the holder went on believing.
BeliefGap make_belief_gap(std::string scenario, std::string strategy, std::vector<double> seconds);

/// One row for each scenario and strategy: how many plays, the median gap and the largest.
TextSheet sheet_of(const std::vector<BeliefGap>& gaps);

}  // namespace lockbench::results

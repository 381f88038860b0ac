#pragma once

#include <string>
#include <vector>

#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// What an experiment's costs say, in a line each; nothing for other runs.
std::vector<std::string> experiment_findings(const Result& result);
/// "none shown", "4.0 % ± 2.8 %"; "4.0 %" without an interval.
Cell cost_cell(const Cost& cost, Unit unit);

/// One row for each strategy.
Table capacity_table(const std::vector<Capacity>& capacities);
/// One row for each rate, as CSV.
Table rate_table(const std::vector<Capacity>& capacities);
/// What is kept, what limits it and what is planned, in a line each.
std::vector<std::string> findings(const Capacity& capacity);
/// A figure of a distribution, a lower bound if it is one; nothing without samples.
Cell figure_cell(const Distribution& of, double Distribution::*figure);

}  // namespace lockbench::results

#pragma once

#include <string>
#include <vector>

#include "results/file/capacity.h"
#include "results/tables/experiment_sheet.h"

namespace lockbench::results {

/// One row for each strategy.
TextSheet sheet_of(const std::vector<Capacity>& capacities);

/// What limits it, what is planned, and what the models say, in a line each.
std::vector<std::string> readings(const Capacity& capacity);

/// p50 and p99 by the rate: one line a step, sorted by rate, on a logarithmic axis of time that is
/// written below. Empty where nothing was granted.
std::string chart(const Capacity& capacity);

/// One row a step and a sweep point. Plain numbers in base units; empty where there is nothing.
std::string capacity_csv(const std::vector<Capacity>& capacities);

}  // namespace lockbench::results

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// One row for each quorum.
Table point_table(const std::vector<QuorumPoint>& points);
/// What their figures say, in a line each; violations come first.
std::vector<std::string> findings(const std::vector<QuorumPoint>& points);
/// Those of the findings that say where a lock violated exclusion.
std::vector<std::string> violations(const std::vector<QuorumPoint>& points);

/// What renewing the most locks cost in a line; nothing unless runs have held locks.
std::vector<std::string> renewal_findings(const Result& result);
/// "none shown", "4.0 % ± 2.8 %"; "4.0 %" of one pair of runs, which has no interval.
Cell throughput_cost(const Run& run);

/// A cost in a sentence: "4.0 % of it (95 %: 1.2 % to 6.8 %)", or "none that can be shown" if its
/// interval holds 0. `of` follows the figure.
std::string cost_text(double cost, const std::optional<Interval>& interval, Unit unit,
                      std::string_view of);

/// One row for each strategy.
Table capacity_table(const std::vector<Capacity>& capacities);
/// One row for each step, as CSV.
Table step_table(const std::vector<Capacity>& capacities);
/// What is kept, what limits it and what is planned, in a line each.
std::vector<std::string> findings(const Capacity& capacity);
/// A figure of a distribution, a lower bound if it is one; nothing without samples.
Cell figure_cell(const Distribution& of, double Distribution::*figure);

template <class Row>
auto of(Distribution Row::*distribution, double Distribution::*figure) {
  return [=](const Row& row) { return figure_cell(row.*distribution, figure); };
}

/// An end of an interval, where there is one.
template <class Row>
auto of(std::optional<Interval> Row::*interval, double Interval::*end) {
  return [=](const Row& row) { return row.*interval ? Cell((*(row.*interval)).*end) : Cell(); };
}

}  // namespace lockbench::results

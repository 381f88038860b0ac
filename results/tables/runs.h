#pragma once

#include "results/stats/load_figures.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// What is known of a strategy without measuring it.
struct KnownFlaw {
  std::string hazard;           ///< the gravest that is known to break it; empty: none does harm
  std::string superseded_by{};  ///< the strategy that replaces it in practice; empty: none does
};

/// By strategy. The caller brings it: results knows no strategies.
using KnownFlaws = std::map<std::string, KnownFlaw, std::less<>>;

/// One row for each strategy, in the order of their first runs: repetitions are merged.
Table run_table(const Result& result, const KnownFlaws& flaws);
/// One row for each run.
Table table_of_each_run(const Result& result, const KnownFlaws& flaws);

/// A row for each rank of each run; none for runs of one process.
Table rank_table(const Result& result);

/// For a result of several loads: a table for each name, with what that load decides. One row for
/// each strategy, by store; what is superseded comes last, marked as old.
std::vector<Block> load_tables(const Result& result, const KnownFlaws& flaws);

/// "≥ 1.4 s" of a lower bound.
Cell cell_of(const std::optional<LoadFigure>& figure);

/// The worst verdict of these runs.
Cell verdict_cell(const std::vector<const Run*>& runs);

/// What follows from the figures, in plain sentences: what is safe, what is cheapest, what is
/// fairest, what to avoid and why, and what to run next. Nothing that is superseded is recommended.
/// A sentence whose load is not in the result is left out.
std::vector<std::string> conclusions(const Result& result, const KnownFlaws& flaws);

// Of experiments

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

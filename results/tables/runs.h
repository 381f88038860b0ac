#pragma once

#include "results/stats/load_figures.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// What is known of a strategy without measuring it.
struct KnownFlaw {
  std::string hazard;           ///< the gravest known hazard that breaks it; empty: none
  std::string superseded_by{};  ///< the strategy that replaces it in practice; empty: none
};

/// By strategy. The caller supplies it, as this library knows no strategies.
using KnownFlaws = std::map<std::string, KnownFlaw, std::less<>>;

/// One row for each strategy, in the order of their first runs: repetitions are merged.
Table run_table(const Result& result, const KnownFlaws& flaws);
/// One row for each run.
Table table_of_each_run(const Result& result, const KnownFlaws& flaws);

/// Of a sweep: one row for each strategy at each point of this load, by clients and rate.
Table sweep_table(const Result& result, const std::string& load);
/// The first rate of a sweep at which each lock is full, in a sentence each.
std::vector<std::string> full_locks(const Result& result);

/// A row for each rank of each run; none for runs of one process.
Table rank_table(const Result& result);

/// For a result of several loads: a table for each load by name, with the figures that matter
/// there. One row for each strategy, by store; superseded ones come last, marked as old.
std::vector<Block> load_tables(const Result& result, const KnownFlaws& flaws);

/// "≥ 1.4 s" for a lower bound.
Cell cell_of(const std::optional<LoadFigure>& figure);

/// A worst p99 of a client, over these runs: "max" if it is the longest of few waits.
Cell worst_client_cell(Cell p99, const std::vector<const Run*>& runs);

/// Whether their lock has no time left: it is taken nearly all the time, or serves less than asked
/// for. More load, or a longer run, only waits longer. Invalid runs and those with faults do not
/// tell.
bool is_full(const std::vector<const Run*>& runs);

/// The worst verdict of these runs.
Cell verdict_cell(const std::vector<const Run*>& runs);

/// Conclusions from the figures, in plain sentences: which strategies are safe, cheapest and
/// fairest, and what to run next. Superseded strategies are not
/// recommended. A sentence whose load is not in the result is left out.
std::vector<std::string> conclusions(const Result& result, const KnownFlaws& flaws);

// Tables and findings of experiments

/// The findings on an experiment's costs, in a line each; empty for other runs.
std::vector<std::string> experiment_findings(const Result& result);
/// "none shown", "4.0 % ± 2.8 %"; "4.0 %" without an interval.
Cell cost_cell(const Cost& cost, Unit unit);

/// One row for each strategy.
Table capacity_table(const std::vector<Capacity>& capacities);
/// The rates kept and missed, the limit and the planned rate, in a line each.
std::vector<std::string> findings(const Capacity& capacity);

/// One row for each strategy that was simulated, and in a sweep for each value.
Table simulation_table(const std::vector<Simulation>& simulations);
/// Of a sweep: where each strategy is best, in a line each.
std::vector<std::string> sweep_findings(const std::vector<Simulation>& simulations);
/// What caused the violations, and what failed.
std::vector<std::string> findings(const Simulation& simulation);

/// A figure of a distribution, marked if it is a lower bound; nothing without samples.
Cell figure_cell(const Distribution& of, double Distribution::*figure);

}  // namespace lockbench::results

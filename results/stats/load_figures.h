#pragma once

#include <functional>

#include "results/file/model.h"

namespace lockbench::results {

// Figures over several runs of one strategy, under the points of a named load, such as the two
// rates of `demand`.

/// If a smaller share is served, the lock cannot keep up.
inline constexpr double kServed = 0.95;

/// Reasons to distrust a run that are not the lock's fault. Saturated clients do not count: waits
/// count from the intended start.
std::vector<std::string> disturbances(const Run& run);

/// Whether the run's figures are those of the lock, even if the lock cannot keep up, and of the
/// whole run: one that a stop cut short is shorter than the others.
bool is_of_the_lock(const Run& run);

/// After the first few runs: one line if the machine disturbed all of them; else empty.
std::string disturbed_from_the_start(const std::vector<Run>& runs);

/// The share of the requested sections that were served; nothing if none was requested. Clients
/// that still wait at the end, each for one section, do not count unless nothing was served: a
/// queue is not an overload. `of_waits`: of the sections that neither failed nor were refused.
std::optional<double> served_share(const std::vector<const Run*>& runs, bool of_waits = false);

struct LoadFigure {
  double value = 0;
  bool at_least = false;       ///< shown as a lower bound
  bool may_be_larger = false;  ///< as waits were cut off; also of what is not shown as a bound
};

/// The median over repetitions; nothing without a value. A lower bound if counting censored waits
/// as infinite would change the median.
std::optional<LoadFigure> median_figure(const std::vector<const Run*>& runs,
                                        const std::string& path);

/// The sum over repetitions; nothing without a value.
std::optional<double> sum_of_figure(const std::vector<const Run*>& runs, const std::string& path);
/// One sum as a share of another; nothing if that is 0. Limited to 1, as an event of the measured
/// part may have its cause in the warm-up, which is not counted.
std::optional<double> ratio_of_sums(const std::vector<const Run*>& runs, const std::string& path,
                                    const std::string& whole_path);

/// The runs of one strategy, of all loads. Points into the result.
struct StrategyLoads {
  std::string strategy, backend;
  std::vector<const Run*> runs;
  std::map<std::string, std::vector<Load>, std::less<>> points;  ///< see points_of()

  /// How many points the load has.
  std::size_t points_of(std::string_view load) const;
  std::vector<const Run*> runs_of(std::string_view load) const;
  /// Under the n-th point of a load; empty if there is no such point.
  std::vector<const Run*> runs_at(std::string_view load, std::size_t point) const;
  bool broke_exclusion() const;
  /// A control without a lock, which lost no update.
  bool counted() const;
  /// A lock in a store that broke exclusion in no run, and had enough contention to tell in one.
  bool is_safe() const;
};

/// In the order of stores; strategies without a store come last.
std::vector<StrategyLoads> strategy_loads(const Result& result);

/// The points of each load, in the order of rate and round-trip time.
std::map<std::string, std::vector<Load>, std::less<>> points_of(const Result& result);

Verdict worst_verdict(const std::vector<const Run*>& runs);

/// Tiers of items by a figure, 1 for the lowest; 0 for items without values. `values[i]` are those
/// of item i by repetition. Items share a tier with its first as long as they cannot be told apart
/// from it: they differ by less than a tenth, or the 95 % confidence interval of their ratio
/// contains 1. `scatter`: the known standard deviation of the figure's logarithm from run to run;
/// it supplements the repetitions, and stands in for them if there are none. 0: not known; without
/// repetitions, single values are then taken as they are.
std::vector<int> tiers(const std::vector<std::vector<double>>& values, double scatter = 0);

/// The known scatter of a figure's logarithm from run to run: 0.5 for p99, rarer and longest waits
/// under contention. 0: not known.
double known_scatter(std::string_view figure);

/// The runs whose figures are those of the lock.
std::vector<const Run*> valid_of(std::vector<const Run*> runs);
/// The runs that are shown: the valid ones, or all if there are none.
std::vector<const Run*> counting_of(std::vector<const Run*> runs);

/// The tier of each strategy under one load, over its valid runs alone, by the deciding figure of
/// the load. `alone`: the time to acquire and release over the network. `demand`: the p99 of the
/// response at the lowest rate (at a rate that the lock cannot keep, p99 only reflects the length
/// of the run). Others: the longest wait, as percentiles hide a client that waits for seconds and
/// then keeps the lock for seconds. 0: no valid run.
std::map<std::string, int> tiers_under(const Result& result, std::string_view load);

}  // namespace lockbench::results

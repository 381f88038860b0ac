#pragma once

#include <functional>

#include "results/file/model.h"

namespace lockbench::results {

// Figures that take several runs: of one strategy under the points of a named load, such as the two
// rates of `demand`.

/// A lower share served means that the lock cannot keep up.
inline constexpr double kServed = 0.95;

/// Reasons against a run's figures that are not the lock's. Clients that cannot keep up are none:
/// waits count from the intended start.
std::vector<std::string> disturbances(const Run& run);

/// Whether its figures are those of the lock. Also of one that cannot keep up.
bool is_of_the_lock(const Run& run);

/// Of the sections that were wanted; nothing if none was. Clients that still wait at the end of a
/// run, each for one section, do not count unless nothing was served: a queue is no overload.
std::optional<double> served_share(const std::vector<const Run*>& runs);

struct LoadFigure {
  double value = 0;
  bool at_least = false;
};

/// The median over repetitions; nothing without a value. A lower bound if it would be another one
/// had nothing that was cut off ever ended.
std::optional<LoadFigure> median_figure(const std::vector<const Run*>& runs,
                                        const std::string& path);

/// Over repetitions; nothing without a value.
std::optional<double> sum_of_figure(const std::vector<const Run*>& runs, const std::string& path);
/// One such sum as a share of another; nothing where that is 0. At most 1: an event of the measured
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
  /// The runs under the n-th point of a load that count: whose figures are those of the lock, or
  /// all if none's are. None if there is no such point.
  std::vector<const Run*> counting_runs(std::string_view load, std::size_t point) const;
  /// The median over the repetitions that count; nothing without such runs.
  std::optional<LoadFigure> figure(std::string_view load, std::size_t point,
                                   const std::string& path) const;

  bool broke_exclusion() const;
  /// A lock in a store that broke exclusion in no run, of which one had enough contention to tell.
  bool is_safe() const;
};

/// In the order of stores, those without one last.
std::vector<StrategyLoads> strategy_loads(const Result& result);

/// The points of each load, in the order of rate and round-trip time.
std::map<std::string, std::vector<Load>, std::less<>> points_of(const Result& result);

Verdict worst_verdict(const std::vector<const Run*>& runs);

/// Tiers of items by a figure, 1 for the lowest; 0 for items without values. `values[i]` are those
/// of item i by repetition. Neighbours share a tier as long as they cannot be told apart from its
/// first: they differ by less than a tenth, or the 95 % confidence interval of their ratio holds 1.
/// `scatter`: the standard deviation of the figure's logarithm from run to run, where it is known;
/// it counts beside the repetitions, and alone where there are none. 0: not known, and where no
/// item has repetitions, single values are taken as they are.
std::vector<int> tiers(const std::vector<std::vector<double>>& values, double scatter = 0);

/// By how much a figure's logarithm is known to scatter from run to run: of waits under contention
/// the slowest of a hundred, rarer ones and the longest by half. 0: not known.
double known_scatter(std::string_view figure);

/// The tier of each strategy under one load, by the figure that decides there: alone the time to
/// acquire and release over the network; under demand the p99 of the response at the lowest rate
/// (where a lock cannot keep up, it only tells how long the run was); else the longest wait.
/// (Percentiles hide it: a client that waits for seconds and then keeps the lock for seconds has a
/// low one.) 0: not measured.
std::map<std::string, int> tiers_under(const Result& result, std::string_view load);

}  // namespace lockbench::results

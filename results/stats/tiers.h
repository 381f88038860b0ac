#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/file/model.h"

namespace lockbench::results {

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

/// A strategy's place under one load, by the figure that decides there: alone the time to acquire
/// and release over the network; under demand the p99 of the response at the lowest rate (where a
/// lock cannot keep up, it only tells how long the run was); else the longest wait. (Percentiles
/// hide it: a client that waits for seconds and then keeps the lock for seconds has a low one.)
struct Place {
  std::string strategy;
  int tier = 0;  ///< 0: not measured
};
/// In the order of strategy_loads().
std::vector<Place> places(const Result& result, std::string_view load);

}  // namespace lockbench::results

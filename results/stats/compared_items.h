#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "results/file/model.h"
#include "results/stats/compared_figures.h"
#include "results/stats/comparison.h"

namespace lockbench::results {

/// With fewer on a side, no permutation is rare enough to be significant.
inline constexpr std::size_t kEnoughRepetitions = 4;

using Values = std::map<int, double>;  ///< by repetition

/// The figures of a strategy in one result, by repetition.
struct StrategyRuns {
  std::string name;
  std::map<int, std::map<std::string, double, std::less<>>> figures{};
  std::set<std::string, std::less<>> at_least{};  ///< figures that are lower bounds in some of them
};

/// In the order of their first runs. Of two runs of one repetition the later one counts.
std::vector<StrategyRuns> strategies_of(const Result& result);

/// One figure of one strategy, on its way to a Difference. Points to what it was made of.
struct Item {
  const StrategyRuns* a = nullptr;
  const StrategyRuns* b = nullptr;
  const ComparedFigure* figure = nullptr;
  Values of_a{}, of_b{};  ///< logarithms where relative
  bool relative = true;   ///< see Difference
  std::size_t place = 0;  ///< of its Difference among all
  std::vector<const Regression*> gates{};

  bool has_both() const { return !of_a.empty() && !of_b.empty(); }
  bool has_none() const { return of_a.empty() && of_b.empty(); }
  bool has_repetitions() const { return std::min(of_a.size(), of_b.size()) >= kEnoughRepetitions; }
};

Item make_item(const StrategyRuns& a, const StrategyRuns& b, const ComparedFigure& figure);

/// NaN if there are none.
double mean_of(const Values& values);

/// Whether it is a count that is 0 on both sides.
bool never_happened(const Item& item);

/// Without an interval. The finding is none yet, but where only one side has the figure.
Difference difference_of(const Item& item);

/// Sets the interval, of which `change` is on the scale of the item's values.
void set_interval(const Item& item, const Interval& change, Difference& difference);

/// Sets the finding. `shown`: the difference is significant in its family. Its interval must agree.
void set_finding(const Item& item, bool shown, Difference& difference);

/// Judges the items, each of which both sides must have: intervals and findings of their
/// differences, gates, and what so few repetitions cannot decide.
void judge(const std::vector<Item>& items, ResultComparison& comparison);

}  // namespace lockbench::results

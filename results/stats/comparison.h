#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/file/model.h"
#include "results/stats/regression.h"
#include "results/tables/units.h"

namespace lockbench::results {

/// The result of comparing one figure of one strategy. `higher` and `lower` are significant
/// differences of figures without a better direction. `may_be_chance`: the figure's own interval
/// leaves out no change, but among so many figures that is no evidence. `cannot_tell`: with so few
/// repetitions no difference can be significant.
enum class Finding {
  none_shown,
  may_be_chance,
  better,
  worse,
  higher,
  lower,
  cannot_tell,
  not_in_a,
  not_in_b,
};
std::string_view to_string(Finding finding);
/// Whether the difference is significant.
bool is_shown(Finding finding);

/// B against A. Where both have a positive value in every repetition, `a` and `b` are geometric
/// means over the repetitions and `change` is b / a - 1; elsewhere arithmetic means and b - a. NaN
/// where it was not measured.
struct Difference {
  std::string strategy;
  std::string figure;  ///< see figures.h
  Unit unit = Unit::number;
  double a = 0, b = 0;
  /// Lower bounds: in some repetition, waits were cut off.
  bool a_at_least = false, b_at_least = false;
  bool relative = false;
  double change = 0;
  /// Confidence interval of the change, of this figure alone. Nothing if too little was measured.
  std::optional<double> low, high;
  std::optional<double> p;  ///< adjusted for the family, where repetitions were permuted
  Finding finding = Finding::none_shown;
};

struct ComparisonOptions {
  double confidence = 0.95;
  /// The figures of these gates are compared even if they are not among the usual ones. The
  /// comparison says so if one was not measured.
  std::vector<Regression> fail_on;
};

/// What a gate says of one strategy.
struct Gate {
  enum class Outcome {
    kept,
    /// No regression is shown, but the interval reaches beyond the bound, or the figure may, or A
    /// does not have it.
    not_excluded,
    regression,
    not_measured,  ///< in B, or by neither
  };
  Regression bound;
  std::string strategy;  ///< empty: none has the figure
  Outcome outcome = Outcome::kept;
  std::optional<std::size_t> place;  ///< of its difference among all
  /// The smallest change, as in Difference, that these repetitions show with a power of 80 %.
  /// Nothing if one side was not measured.
  std::optional<double> detectable;
};
std::string_view to_string(Gate::Outcome outcome);

struct ResultComparison {
  double confidence = 0.95;
  std::vector<Difference> differences;            ///< by strategy, in A's order
  std::vector<std::string> only_in_a, only_in_b;  ///< strategies
  std::size_t in_both = 0;                        ///< strategies
  /// Strategies by figure, for those of `fail_on` that neither result measured.
  std::map<std::string, std::vector<std::string>> unmeasured;
  std::vector<Gate> gates;
  /// Why so few repetitions cannot decide a gate, and what would help. Empty if they can.
  std::string gates_undecided;
  /// What casts doubt on a result, in a line each: it was interrupted, or has invalid runs.
  std::vector<std::string> doubts;
  std::vector<std::string> notes;  ///< what limits the findings, in a line each; the doubts, too
};

/// Compares every strategy of both results, figure by figure; of strategies that only A has, only
/// those of `fail_on`. Intervals are those of one figure; findings are adjusted for two families:
/// the regressions that `fail_on` asks for, and all other differences. If nothing differs, the
/// whole comparison finds a difference with a probability of at most 1 - confidence, which the
/// families share evenly, unless so few repetitions need another share to show anything.
///
/// With four repetitions or more on both sides, repetitions are the sample: permuted for findings,
/// resampled for intervals (see significance.h). With fewer, how much figures are known to scatter
/// from run to run counts as much as four repetitions; intervals and findings are Welch's.
ResultComparison compare(const Result& a, const Result& b, const ComparisonOptions& options);

/// How many repetitions on each side gates need.
std::size_t repetitions_of_gates(double confidence);

/// Differences in workload, machine or servers that make two results incomparable, one line each.
/// Repetitions, seed, output and the choice of strategies may differ.
std::vector<std::string> incompatibilities(const Result& a, const Result& b);

}  // namespace lockbench::results

#pragma once

#include "results/stats/threshold.h"
#include "results/tables/text.h"

namespace lockbench::results {

/// The result of comparing one figure of one strategy. `higher` and `lower` are significant
/// differences of figures without a better direction. `too_few`: with so few repetitions, and so
/// many figures of its family, no difference can be significant.
enum class Finding { none_shown, better, worse, higher, lower, too_few, not_in_a, not_in_b };
std::string_view to_string(Finding finding);
/// Whether the difference is significant.
bool is_shown(Finding finding);

/// With fewer on a side, no permutation is rare enough to be significant.
inline constexpr std::size_t kFewestRepetitions = 4;

/// B against A: medians over the repetitions. Where all values are positive, `change` is b / a - 1;
/// elsewhere b - a. NaN where it was not measured.
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
  std::optional<double> p;  ///< adjusted for its family
  Finding finding = Finding::none_shown;
};

/// The gate's bound as a change, as in Difference: negative where B must not fall below A.
double bound_of(const Regression& gate, const Difference& difference);

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
    /// No regression is shown, and none is ruled out: the interval reaches beyond the bound, a
    /// figure is a lower bound, or A lacks it.
    not_excluded,
    regression,
    not_measured,  ///< in B, or by neither
  };
  Regression bound;
  std::string strategy;  ///< empty: none has the figure
  Outcome outcome = Outcome::kept;
  std::optional<std::size_t> place;  ///< of its difference among all
  /// About the smallest change, as in Difference, that these repetitions show with a power of 80 %.
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
  /// Why so few repetitions decide nothing, or not a gate, and what would help. Empty if they do.
  std::string undecided, gates_undecided;
  /// What casts doubt on a result, in a line each: it was interrupted, or has invalid runs.
  std::vector<std::string> doubts;
  std::vector<std::string> notes;  ///< what limits the findings, in a line each; the doubts, too
};

/// Compares every strategy of both results, figure by figure; of strategies that only A has, only
/// those of `fail_on`. The change is the ratio of medians over repetitions, with a bootstrap
/// interval; a finding needs an interval that leaves out no change and a permutation test, whose
/// levels are Holm's (1979) within two families: what `fail_on` asks for (else throughput and p99
/// of acquiring), and all other figures. If nothing differs, the whole comparison finds a
/// difference with a probability of at most 1 - confidence, of which the first family has
/// nearly all.
ResultComparison compare(const Result& a, const Result& b, const ComparisonOptions& options);

/// How many repetitions on each side so many gates need.
std::size_t repetitions_of_gates(std::size_t gates, double confidence);

}  // namespace lockbench::results

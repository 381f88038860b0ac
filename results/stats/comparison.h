#pragma once

#include "results/stats/threshold.h"
#include "results/tables/text.h"

namespace lockbench::results {

/// The result of comparing one figure of one strategy. `higher` and `lower` are significant
/// differences of figures without a better direction. `too_few`: no difference can be significant
/// with so few repetitions and so many figures in the family.
enum class Finding { none_shown, better, worse, higher, lower, too_few, not_in_a, not_in_b };
std::string_view to_string(Finding finding);
/// Whether the difference is significant.
bool is_shown(Finding finding);

/// With fewer repetitions on a side, no permutation is rare enough to be significant.
inline constexpr std::size_t kFewestRepetitions = 4;

/// B compared with A: medians over the repetitions. `change` is b / a - 1 if all values are
/// positive, else b - a. NaN if not measured.
struct Difference {
  std::string strategy;
  std::string figure;  ///< see figures.h
  Unit unit = Unit::number;
  double a = 0, b = 0;
  /// Lower bounds: waits were cut off, and the median would be larger if they had never ended.
  bool a_at_least = false, b_at_least = false;
  bool relative = false;
  double change = 0;
  /// Confidence interval of this figure's change alone. Nothing if too little was measured.
  std::optional<double> low, high;
  std::optional<double> p;  ///< adjusted for its family
  Finding finding = Finding::none_shown;
};

/// The gate's bound as a change, as in Difference; negative if B must not fall below A.
double bound_of(const Regression& gate, const Difference& difference);

struct ComparisonOptions {
  double confidence = 0.95;
  /// The figures of these gates are compared in addition to the usual ones. The comparison reports
  /// a figure that was not measured.
  std::vector<Regression> fail_on;
  bool with_invalid = false;  ///< invalid runs count too
};

/// The outcome of a gate for one strategy.
struct Gate {
  enum class Outcome {
    kept,
    /// No regression is shown, and none is ruled out: the interval reaches beyond the bound, a
    /// figure is a lower bound, or A lacks it.
    not_excluded,
    regression,
    not_measured,  ///< in B, or in neither result
  };
  Regression bound;
  std::string strategy;  ///< empty: no strategy has the figure
  Outcome outcome = Outcome::kept;
  std::optional<std::size_t> place;  ///< index of its difference
  /// About the smallest change, as in Difference, that these repetitions show with a power of 80 %.
  /// Nothing if one side was not measured.
  std::optional<double> detectable;
  /// Why it could be neither kept nor missed, whatever the repetitions show; with `not_excluded`.
  std::string undecided;
};
std::string_view to_string(Gate::Outcome outcome);

struct ResultComparison {
  double confidence = 0.95;
  std::vector<Difference> differences;            ///< by strategy, in A's order
  std::vector<std::string> only_in_a, only_in_b;  ///< strategies
  std::size_t in_both = 0;                        ///< strategies
  /// Strategies by figure, for the figures of `fail_on` that neither result measured.
  std::map<std::string, std::vector<std::string>> unmeasured;
  std::vector<Gate> gates;
  /// Why there are too few repetitions to decide anything, or to decide a gate, and what would
  /// help. Empty if there are enough.
  std::string undecided, gates_undecided;
  /// Doubts about a result, a line each: it was interrupted, or has invalid runs.
  std::vector<std::string> doubts;
  std::vector<std::string> notes;  ///< limits of the findings, a line each, including the doubts
};

/// Compares every strategy of both results, figure by figure; for strategies that only A has, only
/// the figures of `fail_on`. The change is the ratio of medians over repetitions, with a bootstrap
/// interval. A finding needs an interval that excludes "no change", and significance in a
/// permutation test with Holm's levels (1979) within two families: the figures of `fail_on` (else
/// throughput and p99 of acquiring), and all others. If nothing differs, the whole comparison finds
/// a difference with a probability of at most 1 - confidence; the first family gets nearly all of
/// that.
ResultComparison compare(const Result& a, const Result& b, const ComparisonOptions& options);

/// How many repetitions on each side so many gates need.
std::size_t repetitions_of_gates(std::size_t gates, double confidence);

}  // namespace lockbench::results

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/file/model.h"

namespace lockbench::results {

/// The result of comparing one figure of one strategy. `higher` and `lower` are significant
/// differences of figures without a better direction. `cannot_tell`: with so few repetitions no
/// difference can be significant.
enum class Finding {
  none_shown,
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

enum class FigureKind { seconds, number, count };

/// B against A. Where both have a positive value in every repetition, `a` and `b` are geometric
/// means over the repetitions and `change` is b / a - 1; elsewhere arithmetic means and b - a. NaN
/// where it was not measured.
struct Difference {
  std::string strategy;
  std::string figure;  ///< see figures.h
  FigureKind kind = FigureKind::number;
  double a = 0, b = 0;
  bool relative = false;
  double change = 0;
  /// Simultaneous confidence interval of the change. Nothing if too little was measured.
  std::optional<double> low, high;
  std::optional<double> p;  ///< adjusted for all figures compared, where repetitions were permuted
  Finding finding = Finding::none_shown;
};

struct ComparisonOptions {
  double confidence = 0.95;
  /// Figures to compare besides the usual ones. If one was not measured, the comparison says so.
  std::vector<std::string> more_figures;
};

struct ResultComparison {
  double confidence = 0.95;
  std::vector<Difference> differences;            ///< by strategy, in A's order
  std::vector<std::string> only_in_a, only_in_b;  ///< strategies
  std::size_t in_both = 0;                        ///< strategies
  /// Strategies by figure, for those of `more_figures` that neither result measured.
  std::map<std::string, std::vector<std::string>> unmeasured;
  /// Why no difference can be significant with so few repetitions, and what would help; one of the
  /// notes too. Empty if there are enough.
  std::string too_few;
  std::vector<std::string> notes;  ///< what limits the findings, in a line each
};

/// Compares every strategy of both results, figure by figure; of strategies that only A has, only
/// `more_figures`. If nothing differs, the whole comparison finds a difference with a probability
/// of at most 1 - confidence.
///
/// With four repetitions or more on both sides, repetitions are the sample: permuted for the test
/// (see significance.h), and counted as fewer than they are, because the state of the
/// machine lasts longer than one of them. With fewer, the spread within a run stands in: block
/// bootstrap over its seconds where there is a series, ranks of the histogram where there is none,
/// the samples counted as fewer by what the series shows of their clumping; to which is added by
/// how much two runs may differ for no reason.
ResultComparison compare(const Result& a, const Result& b, const ComparisonOptions& options);

/// Differences in workload, machine or servers that make two results incomparable, one line each.
/// Repetitions, seed, output and the choice of strategies may differ.
std::vector<std::string> incompatibilities(const Result& a, const Result& b);

}  // namespace lockbench::results

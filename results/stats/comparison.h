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

/// What can be said of one figure of one strategy. `higher` and `lower` are shown differences of
/// figures of which nobody can say which is good. `cannot_tell`: with so few repetitions, no
/// difference whatever could be shown.
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
/// Whether a difference was shown.
bool is_shown(Finding finding);

enum class FigureKind { seconds, number, count };

/// B against A. Where both have a positive value in every repetition, `a` and `b` are geometric
/// means over the repetitions and `change` is b / a - 1; elsewhere arithmetic ones and b - a. Not a
/// number where that was not measured.
struct Difference {
  std::string strategy;
  std::string figure;  ///< see figures.h
  FigureKind kind = FigureKind::number;
  double a = 0, b = 0;
  bool relative = false;
  double change = 0;
  /// Confidence interval of the change; those of one comparison hold together. Nothing where too
  /// little was measured to have one.
  std::optional<double> low, high;
  std::optional<double> p;  ///< adjusted for all figures compared, where repetitions were permuted
  Finding finding = Finding::none_shown;
};

struct ComparisonOptions {
  double confidence = 0.95;
  /// Beside the usual ones, or among them: those that matter, so that it is told if they are
  /// missing.
  std::vector<std::string> more_figures;
};

struct ResultComparison {
  double confidence = 0.95;
  std::vector<Difference> differences;            ///< by strategy, in A's order
  std::vector<std::string> only_in_a, only_in_b;  ///< strategies
  std::size_t in_both = 0;                        ///< strategies
  /// `more_figures` that of these strategies of both results neither measured.
  std::map<std::string, std::vector<std::string>> unmeasured;
  /// Why repetitions can show nothing with this confidence, and what would, in a line (one of the
  /// notes too); empty where they can.
  std::string too_few;
  std::vector<std::string> notes;  ///< what limits the findings, in a line each
};

/// Every strategy that both results have, figure by figure; of those that only A has, what is among
/// `more_figures`. The probability that anything at all is found where nothing differs is
/// 1 - confidence for the whole comparison.
///
/// With four repetitions or more on both sides, repetitions are the sample: permuted for the test
/// (see significance.h), and counted as fewer than they are, because the machine's mood lasts
/// longer than one of them. With fewer, the spread within a run stands in: block bootstrap over its
/// seconds where there is a series, ranks of the histogram where there is none, the samples counted
/// as fewer by what the series shows of their clumping; to which is added by how much two runs may
/// differ for no reason.
ResultComparison compare(const Result& a, const Result& b, const ComparisonOptions& options);

/// What makes two results no match for each other, in a few words each: workload, machine, servers.
/// Repetitions, seed, output and the choice of strategies may differ.
std::vector<std::string> incompatibilities(const Result& a, const Result& b);

}  // namespace lockbench::results

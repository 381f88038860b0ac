#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "results/file/model.h"

namespace lockbench::results {

/// Student's t: the value that is not exceeded with probability `p` (0 < p < 1), for at least one
/// degree of freedom.
double student_quantile(double p, double degrees_of_freedom);

/// Where the mean of the population lies that the sample was drawn from, by Student's t; nothing
/// for fewer than two values. `noise`: standard deviation that a value has at the least.
std::optional<Interval> mean_interval(std::span<const double> sample, double noise = 0);

/// Where the mean of B less the mean of A lies: percentiles of the differences of resampled values,
/// widened because a bootstrap of few values is too narrow, by a fifth at most. From two values
/// on each side.
Interval bootstrap_interval(std::span<const double> a, std::span<const double> b,
                            double confidence);

/// Which differences of B from A are looked for.
enum class Side { both, above, below };

/// Several figures measured in the same repetitions of two results: values[i] belongs to repetition
/// i, the first `of_a` of which are A's. A figure that a repetition lacks is nothing.
struct Feature {
  std::vector<std::optional<double>> values;
  double noise = 0;  ///< standard deviation that a value has at the least
  Side side = Side::both;
};

/// The two-sample t of one figure under one division of the repetitions; 0 where a side has fewer
/// than two values.
struct TwoSample {
  double difference = 0;  ///< mean of B less mean of A
  double error = 0;       ///< standard error of the difference, variances pooled
  double degrees = 0;     ///< of freedom
  double t() const { return error > 0 ? difference / error : 0; }
  /// How far the difference is on that side: |t|, t or -t.
  double t(Side side) const;
};
TwoSample two_sample(const Feature& feature, const std::vector<bool>& in_b);

/// The same by Welch, who lets A and B scatter differently. Each has at least one value. `known_a`,
/// `known_b`: the standard deviation that values are known to have, which counts as much as four
/// repetitions (a moderated variance: Smyth, Linear models and empirical Bayes methods, 2004); 0:
/// not known. Then a single value is taken to scatter like the other side's; if both sides are
/// single, the error is 0.
TwoSample welch(std::span<const double> a, std::span<const double> b, double known_a,
                double known_b);

/// Westfall and Young's permutation test (Resampling-Based Multiple Testing, 1993). Repetitions are
/// reassigned to A and B as a whole, so that the figures of one repetition stay together. The bound
/// is what the largest t of all figures, each on its side, exceeds with probability
/// `1 - confidence` if A and B do not differ. Assumes no distribution, only that repetitions are
/// exchangeable.
class PermutationTest {
 public:
  /// Tries at most 2,000 divisions.
  PermutationTest(const std::vector<Feature>& features, std::size_t of_a);

  /// The t that must be exceeded. Nothing if too few repetitions make that impossible.
  std::optional<double> critical(double confidence) const;
  /// The least share of false alarms with which anything can be shown; 1 if nothing can.
  double least_alarms() const;
  /// How often the largest t of all reaches this one.
  double p_value(double t) const;

 private:
  /// How many divisions are among the largest in any case: the true one and, if a figure looks on
  /// both sides, its mirror image.
  std::size_t always_largest_ = 1;
  std::vector<double> largest_;  ///< of each division, sorted
};

/// How many repetitions on both sides it takes to show anything on one side, or on either, with
/// this share of false alarms; nothing if no number does.
std::optional<std::size_t> repetitions_for(double alarms, bool one_sided);

}  // namespace lockbench::results

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

/// Several figures measured in the same repetitions of two results: values[i] belongs to repetition
/// i, the first `of_a` of which are A's. A figure that a repetition lacks is nothing.
struct Feature {
  std::vector<std::optional<double>> values;
  double noise = 0;  ///< standard deviation that a value has at the least
};

/// The two-sample t of one figure under one division of the repetitions; 0 where a side has fewer
/// than two values.
struct TwoSample {
  double difference = 0;  ///< mean of B less mean of A
  double error = 0;       ///< standard error of the difference, variances pooled
  double t() const { return error > 0 ? difference / error : 0; }
};
TwoSample two_sample(const Feature& feature, const std::vector<bool>& in_b);

/// Westfall and Young's permutation test (Resampling-Based Multiple Testing, 1993). Repetitions are
/// reassigned to A and B as a whole, so that the figures of one repetition stay together. The bound
/// is what the largest |t| of all figures exceeds with probability `1 - confidence` if A and B do
/// not differ. Assumes no distribution, only that repetitions are exchangeable.
class PermutationTest {
 public:
  /// Tries at most 2,000 divisions.
  PermutationTest(const std::vector<Feature>& features, std::size_t of_a);

  /// The |t| that must be exceeded. Nothing if too few repetitions make that impossible.
  std::optional<double> critical(double confidence) const;
  /// The least share of false alarms with which anything can be shown; 1 if nothing can.
  double least_alarms() const;
  /// How often the largest |t| of all reaches this one.
  double p_value(double t) const;

 private:
  std::vector<double> largest_;  ///< of each division, sorted
};

/// How many repetitions on both sides it takes to show anything with this share of false alarms;
/// nothing if no number does.
std::optional<std::size_t> repetitions_for(double alarms);

}  // namespace lockbench::results

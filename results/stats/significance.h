#pragma once

#include <optional>
#include <span>

#include "results/file/model.h"

namespace lockbench::results {

/// Student's t: the value that is not exceeded with probability `p` (0 < p < 1), for at least one
/// degree of freedom.
double student_quantile(double p, double degrees_of_freedom);

/// Where the mean of the population lies that the sample was drawn from, by Student's t; nothing
/// for fewer than two values. `noise`: standard deviation that a value has at the least.
std::optional<Interval> mean_interval(std::span<const double> sample, double noise = 0);

/// Where the median of B less the median of A lies: percentiles of the differences of resampled
/// values (Efron and Tibshirani, An Introduction to the Bootstrap, 1993). At least one value each.
Interval bootstrap_interval(std::span<const double> a, std::span<const double> b,
                            double confidence);

/// Which differences of B from A are looked for.
enum class Side { both, above, below };

/// How often the means of A and B are as far apart as they are, on that side, if values are dealt
/// out to A and B at random: an exact permutation test (Good, Permutation Tests, 2000), by at most
/// 200,000 deals. It assumes no distribution.
double permutation_p(std::span<const double> a, std::span<const double> b, Side side);

/// The least p that so many values on either side can have.
double least_p(std::size_t of_a, std::size_t of_b, Side side);

/// Difference of the means of B and A by Welch, who lets A and B scatter differently.
struct Welch {
  double difference = 0;  ///< mean of B less mean of A
  double error = 0;       ///< its standard error; 0 if nothing is known of the scatter
  double degrees = 1;     ///< of freedom
};
/// Each has at least one value. `known`: the standard deviation that values are known to have,
/// which counts as much as four values (a moderated variance: Smyth, Linear models and empirical
/// Bayes methods, 2004); 0: not known. Then a single value is taken to scatter like the other
/// side's.
Welch welch(std::span<const double> a, std::span<const double> b, double known = 0);

}  // namespace lockbench::results

#pragma once

#include <span>

#include "results/file/model.h"

namespace lockbench::results {

// Statistics of a sample, which need not be sorted. Nothing where the sample is too small to have
// one.

std::optional<double> mean(std::span<const double> sample);

/// Of the population that the sample was drawn from (n - 1); needs two values.
std::optional<double> stddev(std::span<const double> sample);

/// Linear between the two nearest ranks, the way R and NumPy do by default; share from 0 to 1.
std::optional<double> percentile(std::span<const double> sample, double share);

std::optional<double> median(std::span<const double> sample);

/// Jain's fairness index (Jain, Chiu, Hawe 1984): 1 if all have the same, 1/n if one has all.
/// 1 also if all have 0.
double jain_index(std::span<const std::uint64_t> shares);

/// Of a Poisson distribution, of which `events` were seen: the highest mean that gives no more than
/// these with a probability of 5 %, and the lowest that gives no fewer. So bounds with a confidence
/// of 95 %: quantiles of a gamma distribution. Events need not be whole, for counts that were
/// divided by their overdispersion.
double poisson_upper_bound(double events);
double poisson_lower_bound(double events);

/// At most so many events in a million trials, with a confidence of 95 %; nothing without trials.
std::optional<double> most_per_million(std::uint64_t events, std::uint64_t trials);

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

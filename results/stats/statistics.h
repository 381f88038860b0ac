#pragma once

#include <span>

#include "results/file/model.h"

namespace lockbench::results {

// Statistics of a sample, which need not be sorted. Nothing if the sample is too small.

std::optional<double> mean(std::span<const double> sample);

/// Standard deviation of the population that the sample was drawn from (n - 1); needs two values.
std::optional<double> stddev(std::span<const double> sample);

/// Interpolates between the two nearest ranks, like R and NumPy by default; share from 0 to 1.
std::optional<double> percentile(std::span<const double> sample, double share);

std::optional<double> median(std::span<const double> sample);

/// Jain's fairness index (Jain, Chiu, Hawe 1984): 1 if all shares are equal (also if all are 0),
/// 1/n if one has everything.
double jain_index(std::span<const std::uint64_t> shares);

/// One-sided 95 % confidence bounds on a Poisson mean after `events` observations: quantiles of a
/// gamma distribution. `events` may be fractional, for counts divided by their overdispersion.
double poisson_upper_bound(double events);
double poisson_lower_bound(double events);

/// Two-sided 95 % confidence interval of a Poisson mean after `events`, likewise (Garwood, 1936).
Interval poisson_interval(double events);

/// Upper bound on the events in a million trials, with a confidence of 95 %; nothing without
/// trials.
std::optional<double> most_per_million(std::uint64_t events, std::uint64_t trials);

/// Quantile `p` (0 < p < 1) of Student's t, for at least one degree of freedom.
double student_quantile(double p, double degrees_of_freedom);

/// 95 % confidence interval of the population's mean, by Student's t; nothing for fewer than two
/// values. `noise`: the standard deviation of a further, independent error of each value.
std::optional<Interval> mean_interval(std::span<const double> sample, double noise = 0);

/// Confidence interval of the median of B less the median of A: percentiles of the differences of
/// resampled values (Efron and Tibshirani, An Introduction to the Bootstrap, 1993). Each has at
/// least one value.
Interval bootstrap_interval(std::span<const double> a, std::span<const double> b,
                            double confidence);

/// Which differences of B from A are tested.
enum class Side { both, above, below };

/// The probability that the means of A and B are at least as far apart on that side if the values
/// are dealt to A and B at random: a permutation test (Good, Permutation Tests, 2000), exact up to
/// 200,000 deals, beyond by a random sample of them. It assumes no distribution.
double permutation_p(std::span<const double> a, std::span<const double> b, Side side);

/// The smallest p that so many values on either side can have.
double least_p(std::size_t of_a, std::size_t of_b, Side side);

/// Difference of the means of B and A by Welch, which allows A and B to scatter differently.
struct Welch {
  double difference = 0;  ///< mean of B less mean of A
  double error = 0;       ///< its standard error; 0 if nothing is known of the scatter
  double degrees = 1;     ///< of freedom
};
/// Each has at least one value. `known`: the known standard deviation of values, which weighs as
/// much as four values (a moderated variance: Smyth, Linear models and empirical Bayes methods,
/// 2004). 0: not known; a single value is then assumed to scatter like the other side's.
Welch welch(std::span<const double> a, std::span<const double> b, double known = 0);

}  // namespace lockbench::results

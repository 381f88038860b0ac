#pragma once

#include <cstdint>
#include <optional>
#include <span>

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

}  // namespace lockbench::results

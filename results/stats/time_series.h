#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace lockbench::results {

// Statistics of values that were measured one after the other, and so are not independent.

/// How many independent values a series is worth: its length over the integrated autocorrelation
/// time, by the initial positive sequence (Geyer, Practical Markov Chain Monte Carlo, 1992). From 1
/// to the length; the length for fewer than four values, of which nothing can be told.
double effective_size(std::span<const double> series);

/// The standard error of a series' mean, by resampling blocks of consecutive values (Politis and
/// Romano's circular bootstrap, 1992), blocks as long as the series remembers. Nothing for fewer
/// than three values. The same seed gives the same answer.
std::optional<double> block_bootstrap_error(std::span<const double> series, std::uint64_t seed);

}  // namespace lockbench::results

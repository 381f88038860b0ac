#include "results/stats/statistics.h"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace lockbench::results {
namespace {

/// Exact enough, and faster than in long double: intervals take thousands of bounds.
using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

/// The bounds of more events are as good as their number; the library fails at some of them.
constexpr double kMany = 1e9;

}  // namespace

std::optional<double> mean(std::span<const double> sample) {
  if (sample.empty()) {
    return std::nullopt;
  }
  const double sum = std::accumulate(sample.begin(), sample.end(), 0.0);
  return sum / static_cast<double>(sample.size());
}

std::optional<double> stddev(std::span<const double> sample) {
  if (sample.size() < 2) {
    return std::nullopt;
  }
  const double center = *mean(sample);
  double squares = 0;
  for (const double value : sample) {
    squares += (value - center) * (value - center);
  }
  return std::sqrt(squares / static_cast<double>(sample.size() - 1));
}

std::optional<double> percentile(std::span<const double> sample, double share) {
  if (!(share >= 0 && share <= 1)) {
    throw std::invalid_argument("a percentile's share lies between 0 and 1");
  }
  if (sample.empty()) {
    return std::nullopt;
  }
  std::vector<double> sorted(sample.begin(), sample.end());
  std::sort(sorted.begin(), sorted.end());
  const double rank = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
}

std::optional<double> median(std::span<const double> sample) { return percentile(sample, 0.5); }

double jain_index(std::span<const std::uint64_t> shares) {
  double sum = 0;
  double squares = 0;
  for (const std::uint64_t share : shares) {
    const auto value = static_cast<double>(share);
    sum += value;
    squares += value * value;
  }
  if (squares == 0) {
    return 1;
  }
  return std::min(1.0, sum * sum / (static_cast<double>(shares.size()) * squares));
}

double poisson_upper_bound(double events) {
  if (events > kMany) return events;
  // In this order, so that what is not a number counts as none.
  return boost::math::gamma_p_inv(std::max(0.0, events) + 1, 0.95, InDouble());
}

double poisson_lower_bound(double events) {
  // Of less, the bound is below 1e-13.
  constexpr double kFewest = 0.1;
  if (events > kMany) return events;
  return events > kFewest ? boost::math::gamma_p_inv(events, 0.05, InDouble()) : 0;
}

std::optional<double> most_per_million(std::uint64_t events, std::uint64_t trials) {
  if (trials == 0) return std::nullopt;
  const double most = poisson_upper_bound(static_cast<double>(events));
  return std::min(1.0, most / static_cast<double>(trials)) * 1e6;
}

}  // namespace lockbench::results

#include "results/stats/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace lockbench::results {
namespace {

constexpr double kNormal95 = 1.6448536269514722;

double poisson_bound(double shape, double normal) {
  const double root = 1 - 1 / (9 * shape) + normal / (3 * std::sqrt(shape));
  return shape * root * root * root;
}

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
  if (!(events > 0)) return -std::log(0.05);
  return poisson_bound(events + 1, kNormal95);
}

double poisson_lower_bound(double events) {
  return events > 0 ? std::max(0.0, poisson_bound(events, -kNormal95)) : 0;
}

}  // namespace lockbench::results

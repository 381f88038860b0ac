#include "results/stats/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <numeric>
#include <random>

namespace lockbench::results {
namespace {

/// Exact enough, and faster than long double: intervals need thousands of bounds.
using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

/// With more events the bounds are close to their number, and the library fails at some.
constexpr double kMany = 1e9;

/// The Poisson mean with which more than `events` occur with a probability of `share`.
double highest_mean(double events, double share) {
  if (events > kMany) return events;
  // In this order of arguments, NaN counts as 0.
  return boost::math::gamma_p_inv(std::max(0.0, events) + 1, share, InDouble());
}
/// The mean with which at least `events` occur with that probability.
double lowest_mean(double events, double share) {
  // With fewer events, the bound is below 1e-13.
  constexpr double kFewest = 0.1;
  if (events > kMany) return events;
  return events > kFewest ? boost::math::gamma_p_inv(events, share, InDouble()) : 0;
}

/// Up to ten values on each side (184,756 deals), all deals are tried; beyond, a sample is drawn.
constexpr double kMostDeals = 200'000, kDrawn = 50'000;

/// How many ways there are to deal the values out, or how many of them are drawn.
double deals(std::size_t of_a, std::size_t of_b) {
  double ways = 1;
  for (std::size_t i = 1; i <= std::min(of_a, of_b); ++i) {
    ways *= static_cast<double>(of_a + of_b - i + 1) / static_cast<double>(i);
    if (ways > kMostDeals) return kDrawn;
  }
  return ways;
}

/// Calls `take` with the sum of each choice of so many of the values.
template <class Take>
void each_choice(std::span<const double> values, std::size_t count, double sum, const Take& take) {
  if (count == 0) return take(sum);
  if (count == values.size()) return take(std::accumulate(values.begin(), values.end(), sum));
  each_choice(values.subspan(1), count - 1, sum + values[0], take);
  each_choice(values.subspan(1), count, sum, take);
}

/// The variance of single values, with its degrees of freedom.
struct Variance {
  double of_one = 0, degrees = 0;
};

Variance variance_of(std::span<const double> values, double known) {
  constexpr double kWeightOfKnown = 4;
  const auto size = static_cast<double>(values.size());
  const double weight = known > 0 ? kWeightOfKnown : 0, degrees = weight + size - 1;
  if (degrees == 0) return {};
  const double own = std::pow(stddev(values).value_or(0), 2) * (size - 1);
  return {(weight * known * known + own) / degrees, degrees};
}

}  // namespace

std::optional<double> mean(std::span<const double> sample) {
  if (sample.empty()) return std::nullopt;
  const double sum = std::accumulate(sample.begin(), sample.end(), 0.0);
  return sum / static_cast<double>(sample.size());
}

std::optional<double> stddev(std::span<const double> sample) {
  if (sample.size() < 2) return std::nullopt;
  const double center = *mean(sample);
  double squares = 0;
  for (const double value : sample) squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(sample.size() - 1));
}

std::optional<double> percentile(std::span<const double> sample, double share) {
  if (sample.empty()) return std::nullopt;
  std::vector<double> sorted(sample.begin(), sample.end());
  std::ranges::sort(sorted);
  const double rank = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = rank - static_cast<double>(below);
  // Values may be infinite.
  return part == 0 ? sorted[below] : std::lerp(sorted[below], sorted[above], part);
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
  if (squares == 0) return 1;
  return std::min(1.0, sum * sum / (static_cast<double>(shares.size()) * squares));
}

double poisson_upper_bound(double events) { return highest_mean(events, 0.95); }
double poisson_lower_bound(double events) { return lowest_mean(events, 0.05); }

Interval poisson_interval(double events) {
  return {lowest_mean(events, 0.025), highest_mean(events, 0.975)};
}

std::optional<double> most_per_million(std::uint64_t events, std::uint64_t trials) {
  if (trials == 0) return std::nullopt;
  const double most = poisson_upper_bound(static_cast<double>(events));
  return std::min(1.0, most / static_cast<double>(trials)) * 1e6;
}

double student_quantile(double p, double degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), p);
}

std::optional<Interval> mean_interval(std::span<const double> sample, double noise) {
  const auto deviation = stddev(sample);
  if (!deviation) return std::nullopt;
  constexpr double kBelowHighEnd = 0.975;
  const auto size = static_cast<double>(sample.size());
  const double half =
      student_quantile(kBelowHighEnd, size - 1) * std::hypot(*deviation, noise) / std::sqrt(size);
  const double center = *mean(sample);
  return Interval{.low = center - half, .high = center + half};
}

Interval bootstrap_interval(std::span<const double> a, std::span<const double> b,
                            double confidence) {
  constexpr std::size_t kResamples = 1000;
  std::mt19937_64 random(1);
  std::vector<double> drawn;
  const auto median_of_resampled = [&](std::span<const double> values) {
    drawn.resize(values.size());
    for (double& one : drawn) one = values[random() % values.size()];
    const auto upper = drawn.begin() + static_cast<std::ptrdiff_t>(drawn.size() / 2);
    std::nth_element(drawn.begin(), upper, drawn.end());
    return drawn.size() % 2 == 1 ? *upper : (*upper + *std::max_element(drawn.begin(), upper)) / 2;
  };
  std::vector<double> differences(kResamples);
  for (double& one : differences) one = median_of_resampled(b) - median_of_resampled(a);
  const double tail = (1 - confidence) / 2;
  return {.low = *percentile(differences, tail), .high = *percentile(differences, 1 - tail)};
}

double permutation_p(std::span<const double> a, std::span<const double> b, Side side) {
  std::vector<double> values(a.begin(), a.end());
  values.insert(values.end(), b.begin(), b.end());
  const auto [least, most] = std::ranges::minmax_element(values);
  const double rounding = 1e-9 * (*most - *least);
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  const auto of_a = static_cast<double>(a.size()), of_b = static_cast<double>(b.size());
  // The mean of B less that of A, in the direction of the tested side.
  const auto distance = [&](double sum_of_b) {
    const double difference = sum_of_b / of_b - (total - sum_of_b) / of_a;
    return side == Side::both    ? std::abs(difference)
           : side == Side::above ? difference
                                 : -difference;
  };
  const double seen = distance(std::accumulate(b.begin(), b.end(), 0.0)) - rounding;
  std::size_t as_far = 0, tried = 0;
  const auto count = [&](double sum_of_b) {
    ++tried;
    if (distance(sum_of_b) >= seen) ++as_far;
  };
  if (deals(a.size(), b.size()) != kDrawn) {
    each_choice(values, b.size(), 0, count);
  } else {
    std::mt19937_64 random(1);
    count(std::accumulate(b.begin(), b.end(), 0.0));  // the actual deal counts, too
    while (static_cast<double>(tried) < kDrawn) {
      double sum = 0;
      for (std::size_t i = 0; i < b.size(); ++i) {
        std::swap(values[i], values[i + random() % (values.size() - i)]);
        sum += values[i];
      }
      count(sum);
    }
  }
  return static_cast<double>(as_far) / static_cast<double>(tried);
}

double least_p(std::size_t of_a, std::size_t of_b, Side side) {
  // A difference has a mirror image on the other side only if A and B have the same size.
  const double extremes = side == Side::both && of_a == of_b ? 2 : 1;
  return std::min(1.0, extremes / deals(of_a, of_b));
}

Welch welch(std::span<const double> a, std::span<const double> b, double known) {
  Variance va = variance_of(a, known), vb = variance_of(b, known);
  // A single value says nothing about its scatter, so the other side's is used.
  if (va.degrees == 0) va = vb;
  if (vb.degrees == 0) vb = va;
  const double of_a = va.of_one / static_cast<double>(a.size());
  const double of_b = vb.of_one / static_cast<double>(b.size());
  const double difference = *mean(b) - *mean(a);
  if (of_a + of_b == 0) return {difference, 0, 1};
  const double degrees =
      std::pow(of_a + of_b, 2) / (std::pow(of_a, 2) / va.degrees + std::pow(of_b, 2) / vb.degrees);
  return {difference, std::sqrt(of_a + of_b), std::max(1.0, degrees)};
}

}  // namespace lockbench::results

#include "results/stats/significance.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <random>
#include <stdexcept>

#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

constexpr std::size_t kMostDivisions = 2000;
/// Values looked at altogether, which bounds the time for results of any size.
constexpr std::size_t kMostWork = 200'000'000;
constexpr std::size_t kFewestDivisions = 400;

/// Whether there are more than `limit` ways to choose; their number if not.
std::size_t ways_to_choose(std::size_t n, std::size_t k, std::size_t limit) {
  double ways = 1;
  for (std::size_t i = 1; i <= std::min(k, n - k); ++i) {
    ways = ways * static_cast<double>(n - i + 1) / static_cast<double>(i);
    if (ways > static_cast<double>(limit)) return limit + 1;
  }
  return static_cast<std::size_t>(std::llround(ways));
}

double largest_t(const std::vector<Feature>& features, const std::vector<bool>& in_b) {
  double largest = 0;
  for (const Feature& feature : features) {
    largest = std::max(largest, two_sample(feature, in_b).t(feature.side));
  }
  return largest;
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

double student_quantile(double p, double degrees_of_freedom) {
  if (!(p > 0 && p < 1 && degrees_of_freedom >= 1)) {
    throw std::invalid_argument("Student's quantile: 0 < p < 1, degrees of freedom from 1");
  }
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
  constexpr std::size_t kMostValues = 1'000'000, kFewestResamples = 400, kMostResamples = 2000;
  const std::size_t resamples =
      std::clamp(kMostValues / (a.size() + b.size()), kFewestResamples, kMostResamples);
  std::mt19937_64 random(1);
  const auto mean_of_resampled = [&](std::span<const double> values) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[random() % values.size()];
    return sum / static_cast<double>(values.size());
  };
  std::vector<double> differences(resamples);
  for (double& one : differences) one = mean_of_resampled(b) - mean_of_resampled(a);

  // Hesterberg, What Teachers Should Know About the Bootstrap, 2015. A wider interval would follow
  // from Student's distribution more than from the data: so with five values a side or fewer, it
  // holds somewhat seldomer than it should.
  constexpr double kWidest = 1.2, kNormal = 1e6;
  const double tail = (1 - confidence) / 2;
  const auto of_a = static_cast<double>(a.size()), of_b = static_cast<double>(b.size());
  const double size = 2 / (1 / of_a + 1 / of_b);
  const double wider =
      std::min(kWidest, student_quantile(1 - tail, of_a + of_b - 2) /
                            student_quantile(1 - tail, kNormal) * std::sqrt(size / (size - 1)));
  const double center = *mean(b) - *mean(a);
  return Interval{.low = center + wider * (*percentile(differences, tail) - center),
                  .high = center + wider * (*percentile(differences, 1 - tail) - center)};
}

double TwoSample::t(Side side) const {
  return side == Side::both ? std::abs(t()) : side == Side::above ? t() : -t();
}

TwoSample two_sample(const Feature& feature, const std::vector<bool>& in_b) {
  double count[2] = {0, 0};
  double sum[2] = {0, 0};
  for (std::size_t i = 0; i < in_b.size(); ++i) {
    if (!feature.values[i]) continue;
    count[in_b[i] ? 1 : 0] += 1;
    sum[in_b[i] ? 1 : 0] += *feature.values[i];
  }
  if (count[0] < 2 || count[1] < 2) return {};
  const double mean[2] = {sum[0] / count[0], sum[1] / count[1]};
  double squares = 0;
  for (std::size_t i = 0; i < in_b.size(); ++i) {
    if (!feature.values[i]) continue;
    const double off = *feature.values[i] - mean[in_b[i] ? 1 : 0];
    squares += off * off;
  }
  const double degrees = count[0] + count[1] - 2;
  const double variance = squares / degrees + feature.noise * feature.noise;
  return {mean[1] - mean[0], std::sqrt(variance * (1 / count[0] + 1 / count[1])), degrees};
}

TwoSample welch(std::span<const double> a, std::span<const double> b, double known_a,
                double known_b) {
  Variance va = variance_of(a, known_a), vb = variance_of(b, known_b);
  // A single value says nothing of its scatter: the other's has to do.
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

PermutationTest::PermutationTest(const std::vector<Feature>& features, std::size_t of_a) {
  if (features.empty()) return;
  const bool mirrors = std::any_of(features.begin(), features.end(), [](const Feature& feature) {
    return feature.side == Side::both;
  });
  always_largest_ = mirrors ? 2 : 1;
  const std::size_t size = features.front().values.size();
  std::vector<bool> in_b(size, true);
  std::fill_n(in_b.begin(), of_a, false);
  const std::size_t affordable =
      std::clamp(kMostWork / (size * features.size()), kFewestDivisions, kMostDivisions);
  if (ways_to_choose(size, of_a, affordable) <= affordable) {
    // Sorted, "false" first, this is the first division of all.
    do {
      largest_.push_back(largest_t(features, in_b));
    } while (std::next_permutation(in_b.begin(), in_b.end()));
  } else {
    std::mt19937_64 random(size * 1'000'003 + of_a);
    const std::vector<bool> truth = in_b;
    std::vector<bool> mirrored = truth;
    mirrored.flip();
    largest_.push_back(largest_t(features, in_b));
    while (largest_.size() < affordable) {
      std::shuffle(in_b.begin(), in_b.end(), random);
      // The actual division was added once above.
      if (in_b == truth || in_b == mirrored) continue;
      largest_.push_back(largest_t(features, in_b));
    }
  }
  std::sort(largest_.begin(), largest_.end());
}

std::optional<double> PermutationTest::critical(double confidence) const {
  const auto rank =
      static_cast<std::size_t>(std::ceil(confidence * static_cast<double>(largest_.size()) - 1e-9));
  if (rank < 1 || rank + always_largest_ > largest_.size()) return std::nullopt;
  return largest_[rank - 1];
}

double PermutationTest::least_alarms() const {
  if (largest_.size() <= always_largest_) return 1;
  return static_cast<double>(always_largest_) / static_cast<double>(largest_.size());
}

double PermutationTest::p_value(double t) const {
  if (largest_.empty()) return 1;
  const auto below = std::lower_bound(largest_.begin(), largest_.end(), t * (1 - 1e-12));
  return static_cast<double>(largest_.end() - below) / static_cast<double>(largest_.size());
}

std::optional<std::size_t> repetitions_for(double alarms, bool one_sided) {
  for (std::size_t count = 2, ways = 0; ways < kMostDivisions; ++count) {
    ways = std::min(ways_to_choose(2 * count, count, kMostDivisions), kMostDivisions);
    if (alarms * static_cast<double>(ways) >= (one_sided ? 1 : 2) - 1e-9) return count;
  }
  return std::nullopt;
}

}  // namespace lockbench::results

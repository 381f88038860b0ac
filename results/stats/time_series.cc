#include "results/stats/time_series.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

constexpr std::size_t kSmallest = 4;
/// Longest correlation that is looked for, which bounds the work.
constexpr std::size_t kMostLags = 1000;
constexpr int kResamples = 400;

std::vector<double> centred(std::span<const double> series) {
  const double center = mean(series).value_or(0);
  std::vector<double> values(series.begin(), series.end());
  for (double& value : values) value -= center;
  return values;
}

double autocovariance(const std::vector<double>& centred, std::size_t lag) {
  double sum = 0;
  for (std::size_t i = 0; i + lag < centred.size(); ++i) sum += centred[i] * centred[i + lag];
  return sum / static_cast<double>(centred.size());
}

}  // namespace

double effective_size(std::span<const double> series) {
  const auto size = static_cast<double>(series.size());
  if (series.size() < kSmallest) return size;
  const std::vector<double> values = centred(series);
  const double variance = autocovariance(values, 0);
  if (!(variance > 0)) return size;
  // In a stationary series the sums of two neighbouring lags are positive and decrease (Geyer
  // 1992); the rest is noise.
  double time = -1;
  double before = 2;
  const std::size_t lags = std::min(series.size() - 1, kMostLags);
  for (std::size_t lag = 0; lag + 1 <= lags; lag += 2) {
    double pair = (autocovariance(values, lag) + autocovariance(values, lag + 1)) / variance;
    if (pair <= 0) break;
    pair = std::min(pair, before);
    before = pair;
    time += 2 * pair;
  }
  return std::clamp(size / std::max(time, 1.0), 1.0, size);
}

std::optional<double> block_bootstrap_error(std::span<const double> series, std::uint64_t seed) {
  if (series.size() < 3) return std::nullopt;
  const double memory = static_cast<double>(series.size()) / effective_size(series);
  const std::size_t longest = std::max<std::size_t>(1, series.size() / 3);
  const auto block =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(2 * memory - 1)), 1, longest);
  std::mt19937_64 random(seed);
  std::vector<double> means;
  for (int i = 0; i < kResamples; ++i) {
    double sum = 0;
    std::size_t start = 0;
    for (std::size_t taken = 0; taken < series.size(); ++taken) {
      if (taken % block == 0) start = random() % series.size();
      sum += series[(start + taken % block) % series.size()];
    }
    means.push_back(sum / static_cast<double>(series.size()));
  }
  // Resampling draws from the sample, whose variance is too small by this factor.
  const double independent = static_cast<double>(series.size()) / static_cast<double>(block);
  return *stddev(means) * std::sqrt(independent / std::max(independent - 1, 1.0));
}

}  // namespace lockbench::results

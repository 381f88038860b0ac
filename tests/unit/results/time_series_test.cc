#include "results/stats/time_series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

using Series = std::vector<double>;

/// Of variance 1; each value remembers `memory` of the one before it.
Series autoregressive(std::size_t size, double memory, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 1);
  Series series;
  double value = noise(random);
  for (std::size_t i = 0; i < size; ++i) {
    series.push_back(value);
    value = memory * value + noise(random) * std::sqrt(1 - memory * memory);
  }
  return series;
}

double average(double (*of)(std::uint64_t seed)) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) sum += of(seed);
  return sum / 40;
}

TEST(EffectiveSize, IsTheTextbooksForAnAutoregressiveProcess) {
  // n (1 - memory) / (1 + memory)
  EXPECT_NEAR(average([](auto seed) { return effective_size(autoregressive(2000, 0.5, seed)); }),
              2000.0 / 3, 70);
  EXPECT_NEAR(average([](auto seed) { return effective_size(autoregressive(2000, 0.9, seed)); }),
              2000.0 / 19, 25);
  EXPECT_GT(average([](auto seed) { return effective_size(autoregressive(2000, 0, seed)); }), 1700);
}

TEST(EffectiveSize, LiesBetweenOneAndTheLength) {
  EXPECT_EQ(effective_size({}), 0);
  EXPECT_EQ(effective_size(Series{7}), 1);
  EXPECT_EQ(effective_size(Series{5, 5, 5, 5, 5, 5}), 6) << "nothing varies";
  EXPECT_LE(effective_size(Series{1, 2, 1, 2, 1, 2, 1, 2}), 8);
  Series trend;
  for (int i = 0; i < 100; ++i) trend.push_back(i);
  EXPECT_GE(effective_size(trend), 1);
  EXPECT_LT(effective_size(trend), 5);
}

TEST(BlockBootstrap, FindsTheErrorOfAnIndependentSample) {
  const Series series = autoregressive(400, 0, 1);
  EXPECT_NEAR(*block_bootstrap_error(series, 1), *stddev(series) / 20, 0.012);
}

TEST(BlockBootstrap, KnowsThatNeighboursAreAlike) {
  // The true error of the mean of 400 values with memory 0.8: 1 / sqrt(400 / 9).
  const double found = average(
      [](auto seed) { return *block_bootstrap_error(autoregressive(400, 0.8, seed), seed); });
  EXPECT_NEAR(found, 0.15, 0.03);
  EXPECT_GT(found, 2 * 0.05) << "more than twice what independent values would have";
}

TEST(BlockBootstrap, IsRepeatableAndNeedsThreeValues) {
  const Series series = autoregressive(50, 0.5, 3);
  EXPECT_EQ(block_bootstrap_error(series, 9), block_bootstrap_error(series, 9));
  EXPECT_FALSE(block_bootstrap_error(Series{1, 2}, 1).has_value());
  EXPECT_EQ(block_bootstrap_error(Series{2, 2, 2}, 1), 0);
}

}  // namespace
}  // namespace lockbench::results

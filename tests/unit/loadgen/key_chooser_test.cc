#include "loadgen/run/key_chooser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace lockbench::loadgen {
namespace {

std::vector<int> frequencies(const KeyChooser& chooser, int keys, int picks) {
  std::mt19937_64 random(11);
  std::vector<int> seen(static_cast<std::size_t>(keys));
  for (int i = 0; i < picks; ++i) {
    const int key = chooser.pick(random);
    if (key < 0 || key >= keys) {
      ADD_FAILURE() << "no such key: " << key;
      continue;
    }
    ++seen[static_cast<std::size_t>(key)];
  }
  return seen;
}

/// Pearson's test statistic against weights of 1/(k+1)^skew.
double chi_square(const std::vector<int>& seen, double skew, int picks) {
  double total = 0;
  for (std::size_t k = 0; k < seen.size(); ++k) {
    total += std::pow(static_cast<double>(k + 1), -skew);
  }
  double statistic = 0;
  for (std::size_t k = 0; k < seen.size(); ++k) {
    const double expected = picks * std::pow(static_cast<double>(k + 1), -skew) / total;
    statistic += (seen[k] - expected) * (seen[k] - expected) / expected;
  }
  return statistic;
}

TEST(KeyChooser, FrequenciesFollowTheory) {
  constexpr int kKeys = 50;
  constexpr int kPicks = 200'000;
  for (const double skew : {0.0, 0.5, 0.99, 1.5}) {
    const auto seen = frequencies(KeyChooser(kKeys, skew), kKeys, kPicks);
    // 49 degrees of freedom: above 85 in one of a thousand samples.
    EXPECT_LT(chi_square(seen, skew, kPicks), 85.4) << skew;
  }
}

TEST(KeyChooser, TheTestTellsSkewsApart) {
  constexpr int kPicks = 200'000;
  EXPECT_GT(chi_square(frequencies(KeyChooser(50, 1.0), 50, kPicks), 0.95, kPicks), 85.4);
  EXPECT_GT(chi_square(frequencies(KeyChooser(50, 0.0), 50, kPicks), 0.05, kPicks), 85.4);
}

TEST(KeyChooser, OneKeyIsAlwaysTaken) {
  EXPECT_EQ(frequencies(KeyChooser(1, 1.0), 1, 10).front(), 10);
  EXPECT_EQ(frequencies(KeyChooser(1, 0.0), 1, 10).front(), 10);
}

TEST(KeyChooser, CopesWithMillionsOfKeys) {
  constexpr int kKeys = 2'000'000;
  const KeyChooser chooser(kKeys, 1.0);
  std::mt19937_64 random(5);
  int first = 0;
  for (int i = 0; i < 100'000; ++i) {
    const int key = chooser.pick(random);
    ASSERT_GE(key, 0);
    ASSERT_LT(key, kKeys);
    if (key == 0) ++first;
  }
  // The harmonic number of n is ln n + 0.5772.
  EXPECT_NEAR(first, 100'000 / (std::log(kKeys) + 0.5772), 300);
}

TEST(KeyChooser, NonsenseIsAProgrammingError) {
  EXPECT_THROW(KeyChooser(0, 0), std::invalid_argument);
  EXPECT_THROW(KeyChooser(5, -0.1), std::invalid_argument);
  EXPECT_THROW(KeyChooser(5, std::numeric_limits<double>::quiet_NaN()), std::invalid_argument);
}

}  // namespace
}  // namespace lockbench::loadgen

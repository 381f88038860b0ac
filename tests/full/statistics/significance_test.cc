#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

using Numbers = std::vector<double>;

TEST(StudentQuantile, IsThatOfTheTables) {
  EXPECT_NEAR(student_quantile(0.975, 4), 2.77645, 1e-5);
  EXPECT_NEAR(student_quantile(0.025, 4), -2.77645, 1e-5);
}

TEST(MeanInterval, IsStudents) {
  // R: t.test(c(1, 2, 3, 4, 5))$conf.int
  const auto interval = mean_interval(Numbers{1, 2, 3, 4, 5});
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, 1.036757, 1e-6);
  EXPECT_NEAR(interval->high, 4.963243, 1e-6);
  EXPECT_FALSE(mean_interval(Numbers{1})) << "one value does not scatter";
}

TEST(MeanInterval, IsNoNarrowerThanItsNoise) {
  const auto interval = mean_interval(Numbers{2, 2, 2, 2, 2}, 1);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->high - 2, 2.776445 / std::sqrt(5.0), 1e-6);
}

Numbers normal_numbers(int count, double center, std::mt19937_64& random) {
  Numbers numbers;
  for (int i = 0; i < count; ++i) {
    numbers.push_back(std::normal_distribution<>(center, 1)(random));
  }
  return numbers;
}

TEST(BootstrapInterval, HoldsTheTruthAsOftenAsItSays) {
  std::mt19937_64 random(8);
  const auto share = [&](int count, double confidence) {
    int held = 0;
    for (int i = 0; i < 1000; ++i) {
      const Numbers a = normal_numbers(count, 0, random);
      held += bootstrap_interval(a, normal_numbers(count, 1, random), confidence).holds(1) ? 1 : 0;
    }
    return held / 1000.0;
  };
  EXPECT_GE(share(4, 0.95), 0.89) << "few values are resampled too narrowly";
  EXPECT_NEAR(share(10, 0.95), 0.95, 0.025);
  EXPECT_NEAR(share(10, 0.8), 0.8, 0.07);
}

TEST(PermutationP, IsThePublishedOneOfTheMice) {
  // Survival times from Efron and Tibshirani, An Introduction to the Bootstrap, table 2.1. The book
  // has 0.132 one-sided from 1,000 permutations; all 11,440 have 0.141.
  const Numbers treated{94, 197, 16, 38, 99, 141, 23},
      control{52, 104, 146, 10, 51, 30, 40, 27, 46};
  EXPECT_NEAR(permutation_p(treated, control, Side::below), 0.141, 0.001);
  EXPECT_NEAR(permutation_p(treated, control, Side::both), 0.279, 0.001);
}

TEST(PermutationP, IsExactForFewValues) {
  const Numbers low{1, 2, 3, 4}, high{11, 12, 13, 14};
  EXPECT_DOUBLE_EQ(permutation_p(low, high, Side::both), 2.0 / 70);
  EXPECT_DOUBLE_EQ(permutation_p(low, high, Side::above), 1.0 / 70);
  EXPECT_DOUBLE_EQ(permutation_p(low, high, Side::below), 1);
  EXPECT_DOUBLE_EQ(permutation_p(low, low, Side::both), 1);
  EXPECT_DOUBLE_EQ(least_p(4, 4, Side::both), 2.0 / 70);
  EXPECT_DOUBLE_EQ(least_p(4, 4, Side::above), 1.0 / 70);
}

TEST(PermutationP, IsSampledForMany) {
  std::mt19937_64 random(1);
  const Numbers a = normal_numbers(40, 0, random);
  EXPECT_DOUBLE_EQ(permutation_p(a, normal_numbers(40, 3, random), Side::above), 1.0 / 50'000);
  EXPECT_GT(permutation_p(a, normal_numbers(40, 0, random), Side::both), 0.01);
}

/// How often p is at most 0.05 in 400 tries without a difference.
template <class Distribution>
int false_alarms() {
  int alarms = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 random(seed);
    Numbers a(5), b(5);
    for (Numbers* side : {&a, &b}) {
      for (double& value : *side) value = Distribution()(random);
    }
    alarms += permutation_p(a, b, Side::both) <= 0.05 ? 1 : 0;
  }
  return alarms;
}

TEST(PermutationP, HoldsItsLevelForAnyDistribution) {
  // 20 are expected; more than 34 occur once in a thousand times.
  EXPECT_LE(false_alarms<std::normal_distribution<>>(), 34);
  EXPECT_LE(false_alarms<std::cauchy_distribution<>>(), 34);
  EXPECT_LE(false_alarms<std::lognormal_distribution<>>(), 34);
}

TEST(Welch, LetsBothSidesScatterDifferently) {
  const Welch sample = welch(Numbers{1, 3}, Numbers{10, 12, 14, 16});
  EXPECT_NEAR(sample.difference, 11, 1e-9);
  EXPECT_NEAR(sample.error, std::sqrt(8.0 / 3), 1e-9);
  EXPECT_NEAR(sample.degrees, 192.0 / 52, 1e-9);
}

TEST(Welch, AKnownScatterCountsAsFourRepetitions) {
  const Welch single = welch(Numbers{5}, Numbers{7}, 1);
  EXPECT_NEAR(single.error, std::sqrt(2.0), 1e-9);
  EXPECT_NEAR(single.degrees, 8, 1e-9);
  EXPECT_EQ(welch(Numbers{5}, Numbers{7}).error, 0);
}

}  // namespace
}  // namespace lockbench::results

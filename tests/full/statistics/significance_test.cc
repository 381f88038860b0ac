#include "results/stats/significance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

TEST(StudentQuantile, IsThatOfTheTables) {
  EXPECT_NEAR(student_quantile(0.975, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_quantile(0.995, 2), 9.92484, 1e-5);
  EXPECT_NEAR(student_quantile(0.975, 4), 2.77645, 1e-5);
  EXPECT_NEAR(student_quantile(0.95, 8), 1.85955, 1e-5);
  EXPECT_NEAR(student_quantile(0.9995, 30), 3.64596, 1e-5);
  EXPECT_NEAR(student_quantile(0.975, 1e6), 1.95996, 1e-4);
  EXPECT_NEAR(student_quantile(0.025, 4), -2.77645, 1e-5);
  EXPECT_NEAR(student_quantile(0.5, 4), 0, 1e-9);
  EXPECT_THROW(student_quantile(1, 4), std::invalid_argument);
  EXPECT_THROW(student_quantile(0.5, 0), std::invalid_argument);
}

TEST(MeanInterval, IsStudents) {
  // R: t.test(c(1, 2, 3, 4, 5))$conf.int
  const auto interval = mean_interval(std::vector<double>{1, 2, 3, 4, 5});
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, 1.036757, 1e-6);
  EXPECT_NEAR(interval->high, 4.963243, 1e-6);
}

TEST(MeanInterval, NeedsTwoValues) {
  EXPECT_FALSE(mean_interval({}));
  EXPECT_FALSE(mean_interval(std::vector<double>{1}));
}

TEST(MeanInterval, IsNoNarrowerThanItsNoise) {
  const auto interval = mean_interval(std::vector<double>{2, 2, 2, 2, 2}, 1);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->high - 2, 2.776445 / std::sqrt(5.0), 1e-6);
}

/// The first seven are A's.
Feature mice() {
  // Survival times from Efron and Tibshirani, An Introduction to the Bootstrap, table 2.1.
  return {{94, 197, 16, 38, 99, 141, 23, 52, 104, 146, 10, 51, 30, 40, 27, 46}};
}

std::vector<bool> split(std::size_t of_a, std::size_t of_b) {
  std::vector<bool> in_b(of_a, false);
  in_b.resize(of_a + of_b, true);
  return in_b;
}

using Numbers = std::vector<double>;

Numbers normal_numbers(int count, double center, std::mt19937_64& random) {
  Numbers numbers;
  for (int i = 0; i < count; ++i) {
    numbers.push_back(std::normal_distribution<>(center, 1)(random));
  }
  return numbers;
}

/// The plainest bootstrap: how far apart the percentiles of the resampled difference lie.
double percentile_width(const Numbers& a, const Numbers& b, std::mt19937_64& random) {
  const auto resampled = [&](const Numbers& values) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum += values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
    }
    return sum / static_cast<double>(values.size());
  };
  Numbers differences(2000);
  for (double& one : differences) one = resampled(b) - resampled(a);
  return *percentile(differences, 0.975) - *percentile(differences, 0.025);
}

TEST(BootstrapInterval, IsHardlyWiderThanAPlainBootstrap) {
  std::mt19937_64 random(7);
  for (const int count : {4, 5, 6, 10, 40}) {
    for (int i = 0; i < 10; ++i) {
      const Numbers a = normal_numbers(count, 0, random);
      Numbers b = normal_numbers(count, 1, random);
      if (i % 2 == 0) b[0] = 20;  // a run that something disturbed
      const Interval interval = bootstrap_interval(a, b, 0.95);
      const double plain = percentile_width(a, b, random);
      EXPECT_LE(interval.high - interval.low, 1.3 * plain) << count;
      EXPECT_GE(interval.high - interval.low, 0.95 * plain) << count;
    }
  }
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
  EXPECT_NEAR(share(10, 0.95), 0.95, 0.02);
  EXPECT_NEAR(share(10, 0.8), 0.8, 0.035);
  EXPECT_GE(share(4, 0.95), 0.89) << "few values are resampled too narrowly";
}

TEST(TwoSample, IsStudentsWithPooledVariance) {
  const TwoSample sample = two_sample(mice(), split(7, 9));
  EXPECT_NEAR(sample.difference, -30.63, 0.01);
  EXPECT_NEAR(sample.t(), -1.12, 0.01);
}

TEST(TwoSample, LacksWhatARepetitionLacks) {
  Feature feature{{1, std::nullopt, 3, 10, 12, std::nullopt}};
  const TwoSample sample = two_sample(feature, split(3, 3));
  EXPECT_DOUBLE_EQ(sample.difference, 9);
  feature.values = {1, std::nullopt, std::nullopt, 10, 12, 14};
  EXPECT_EQ(two_sample(feature, split(3, 3)).t(), 0) << "one value has no spread";
}

TEST(TwoSample, NoiseKeepsWhatRepeatsFromLookingExact) {
  Feature feature{{1, 1, 1.01, 1.01}};
  feature.noise = 0.01;
  EXPECT_NEAR(two_sample(feature, split(2, 2)).t(), 1, 1e-9);
}

TEST(Welch, LetsBothSidesScatterDifferently) {
  const TwoSample sample = welch(Numbers{1, 3}, Numbers{10, 12, 14, 16}, 0, 0);
  EXPECT_NEAR(sample.difference, 11, 1e-9);
  EXPECT_NEAR(sample.error, std::sqrt(8.0 / 3), 1e-9);
  EXPECT_NEAR(sample.degrees, 192.0 / 52, 1e-9);
}

TEST(Welch, AKnownScatterCountsAsFourRepetitions) {
  const TwoSample single = welch(Numbers{5}, Numbers{7}, 1, 1);
  EXPECT_NEAR(single.error, std::sqrt(2.0), 1e-9);
  EXPECT_NEAR(single.degrees, 8, 1e-9);
  // That of B is not known, so it is taken to scatter like A.
  const TwoSample unknown = welch(Numbers{1, 3}, Numbers{9}, 1, 0);
  EXPECT_NEAR(unknown.error, std::sqrt(1.8), 1e-9);
  EXPECT_NEAR(unknown.degrees, 9, 1e-9);
  EXPECT_EQ(welch(Numbers{5}, Numbers{7}, 0, 0).error, 0);
}

TEST(PermutationTest, FindsThePublishedLevelOfTheMice) {
  // The book has 0.132 one-sided from 1,000 permutations; all 11,440 two-sided give 0.278 by
  // difference of means.
  const PermutationTest test({mice()}, 7);
  EXPECT_NEAR(test.p_value(two_sample(mice(), split(7, 9)).t(Side::both)), 0.278, 0.015);
  Feature below = mice();
  below.side = Side::below;
  EXPECT_NEAR(PermutationTest({below}, 7).p_value(two_sample(below, split(7, 9)).t(Side::below)),
              0.14, 0.015);
}

TEST(PermutationTest, TriesAllDivisionsOfFewRepetitions) {
  const Feature apart{{1, 2, 3, 4, 11, 12, 13, 14}};
  const PermutationTest test({apart}, 4);
  const double t = two_sample(apart, split(4, 4)).t();
  EXPECT_DOUBLE_EQ(test.p_value(t), 2.0 / 70);
  EXPECT_DOUBLE_EQ(test.p_value(0), 1);
  ASSERT_TRUE(test.critical(0.95).has_value());
  EXPECT_LT(*test.critical(0.95), t);
}

TEST(PermutationTest, LooksOnTheSideThatItIsAskedFor) {
  Feature apart{{1, 2, 3, 4, 11, 12, 13, 14}};
  apart.side = Side::above;
  const PermutationTest above({apart}, 4);
  EXPECT_DOUBLE_EQ(above.p_value(two_sample(apart, split(4, 4)).t(Side::above)), 1.0 / 70);
  EXPECT_TRUE(above.critical(0.98)) << "half as many false alarms as on both sides";
  apart.side = Side::below;
  EXPECT_DOUBLE_EQ(PermutationTest({apart}, 4).p_value(0), 1);
}

TEST(PermutationTest, ThreeAgainstThreeCannotShowAnything) {
  const Feature apart{{1, 2, 3, 11, 12, 13}};
  EXPECT_FALSE(PermutationTest({apart}, 3).critical(0.95).has_value());
  EXPECT_FALSE(PermutationTest({}, 0).critical(0.95).has_value());
}

/// How often the largest of `figures` exceeds the critical value, in 200 tries with nothing to
/// find.
int false_alarms(std::size_t figures, double (*draw)(std::mt19937_64&)) {
  int alarms = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Feature> features(figures);
    for (Feature& feature : features) {
      for (int i = 0; i < 10; ++i) feature.values.emplace_back(draw(random));
    }
    const PermutationTest test(features, 5);
    bool found = false;
    for (const Feature& feature : features) {
      found = found || std::abs(two_sample(feature, split(5, 5)).t()) > *test.critical(0.95);
    }
    alarms += found ? 1 : 0;
  }
  return alarms;
}

TEST(PermutationTest, HoldsItsLevelForManyFiguresOfAnyDistribution) {
  // 10 are expected of 200, and more than 20 in one of a thousand series of tries.
  EXPECT_LE(false_alarms(1, [](auto& random) { return std::normal_distribution<>()(random); }), 20);
  EXPECT_LE(false_alarms(20, [](auto& random) { return std::normal_distribution<>()(random); }),
            20);
  EXPECT_LE(false_alarms(20, [](auto& random) { return std::cauchy_distribution<>()(random); }),
            20);
  EXPECT_LE(false_alarms(20, [](auto& random) { return std::lognormal_distribution<>()(random); }),
            20);
}

TEST(PermutationTest, SaysWhatItsRepetitionsCanShow) {
  for (const std::size_t count : {4, 5, 7}) {
    Feature feature;
    for (std::size_t i = 0; i < 2 * count; ++i) {
      feature.values.emplace_back(static_cast<double>(i * i));
    }
    const PermutationTest test({feature}, count);
    EXPECT_TRUE(test.critical(1 - test.least_alarms())) << count;
    EXPECT_FALSE(test.critical(1 - 0.99 * test.least_alarms())) << count;
    EXPECT_EQ(repetitions_for(test.least_alarms(), false), count);
    EXPECT_EQ(repetitions_for(test.least_alarms() / 2, true), count);
  }
  EXPECT_EQ(PermutationTest({}, 0).least_alarms(), 1);
  EXPECT_EQ(repetitions_for(1e-4, false), std::nullopt) << "no more than 2,000 divisions are tried";
}

TEST(PermutationTest, SearchesManyRepetitionsInBoundedTime) {
  std::mt19937_64 random(1);
  std::vector<Feature> features(50);
  for (Feature& feature : features) {
    for (int i = 0; i < 400; ++i) feature.values.emplace_back(std::normal_distribution<>()(random));
  }
  for (int i = 200; i < 400; ++i) *features[7].values[static_cast<std::size_t>(i)] += 1;
  const PermutationTest test(features, 200);
  EXPECT_GT(std::abs(two_sample(features[7], split(200, 200)).t()), *test.critical(0.95));
}

}  // namespace
}  // namespace lockbench::results

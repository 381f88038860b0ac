#include "results/stats/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "results/stats/tiers.h"

namespace lockbench::results {
namespace {

using Sample = std::vector<double>;

TEST(Statistics, KnownExamples) {
  const Sample sample{2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_DOUBLE_EQ(*mean(sample), 5);
  EXPECT_NEAR(*stddev(sample), 2.138089935299395, 1e-12);
  EXPECT_DOUBLE_EQ(*median(sample), 4.5);
  EXPECT_DOUBLE_EQ(*median(Sample{3, 1, 2}), 2);
}

TEST(Statistics, PercentilesAreLinearBetweenRanks) {
  const Sample sample{15, 50, 20, 40, 35};  // numpy.percentile([...], 40) is 29
  EXPECT_DOUBLE_EQ(*percentile(sample, 0.4), 29);
  EXPECT_DOUBLE_EQ(*percentile(sample, 0), 15);
  EXPECT_DOUBLE_EQ(*percentile(sample, 1), 50);
  EXPECT_THROW(percentile(sample, 1.01), std::invalid_argument);
  EXPECT_THROW(percentile(sample, -0.01), std::invalid_argument);
}

TEST(Statistics, SamplesThatAreTooSmallHaveNone) {
  EXPECT_FALSE(mean({}).has_value());
  EXPECT_FALSE(median({}).has_value());
  EXPECT_FALSE(stddev(Sample{1}).has_value());
  EXPECT_DOUBLE_EQ(*median(Sample{7}), 7);
}

TEST(Statistics, JainsIndex) {
  using Shares = std::vector<std::uint64_t>;
  EXPECT_DOUBLE_EQ(jain_index(Shares{5, 5, 5, 5}), 1);
  EXPECT_DOUBLE_EQ(jain_index(Shares{12, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(jain_index(Shares{1, 2, 3}), 36.0 / 42.0);
  EXPECT_DOUBLE_EQ(jain_index(Shares{0, 0}), 1);
  EXPECT_DOUBLE_EQ(jain_index({}), 1);
}

TEST(Statistics, PoissonUpperBounds) {
  // Half the 95 % quantile of chi-squared with 2 (k + 1) degrees of freedom.
  EXPECT_NEAR(poisson_upper_bound(0), 2.995732, 1e-6);
  EXPECT_NEAR(poisson_upper_bound(1), 4.743865, 1e-6);
  EXPECT_NEAR(poisson_upper_bound(10), 16.962219, 1e-6);
  EXPECT_NEAR(poisson_upper_bound(1000), 1053.603122, 1e-6);
  EXPECT_NEAR(poisson_upper_bound(std::nan("")), poisson_upper_bound(0), 0);
  EXPECT_NEAR(poisson_upper_bound(1e18) / 1e18, 1, 1e-8) << "files come from anywhere";
}

TEST(Statistics, PoissonLowerBounds) {
  // Half the 5 % quantile of chi-squared with 2 k degrees of freedom.
  EXPECT_EQ(poisson_lower_bound(0), 0);
  EXPECT_NEAR(poisson_lower_bound(1e-9), 0, 1e-12);
  EXPECT_NEAR(poisson_lower_bound(1), 0.051293, 1e-6);
  EXPECT_NEAR(poisson_lower_bound(10), 5.425406, 1e-6);
  EXPECT_NEAR(poisson_lower_bound(1000), 948.559849, 1e-6);
  EXPECT_NEAR(poisson_lower_bound(1e18) / 1e18, 1, 1e-8);
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Tiers, OfSingleMeasurementsDifferByATenth) {
  EXPECT_THAT(tiers({{0.3}, {0.1}, {0.105}, {0.112}}), ElementsAre(3, 1, 1, 2));
}

TEST(Tiers, StrategiesThatScatterIntoEachOtherShareOne) {
  const std::vector<double> low{1, 1.6, 0.7, 1.3, 0.9}, high{1.4, 0.9, 1.9, 1.1, 1.5};
  EXPECT_THAT(tiers({low, high}), ElementsAre(1, 1));
  EXPECT_THAT(tiers({{1, 1.01, 0.99, 1, 1}, {1.4, 1.41, 1.39, 1.4, 1.4}}), ElementsAre(1, 2));
}

TEST(Tiers, ASingleMeasurementScattersLikeTheOthers) {
  EXPECT_THAT(tiers({{1}, {1.2, 1.6, 1}}), ElementsAre(1, 1));
  EXPECT_THAT(tiers({{1.2, 1.6, 1}, {4}}), ElementsAre(1, 2));
}

TEST(Tiers, ADifferenceThatIsSureButSmallIsNone) {
  EXPECT_THAT(tiers({{1, 1, 1, 1, 1.0001}, {1.05, 1.05, 1.05, 1.05, 1.0501}}), ElementsAre(1, 1));
}

TEST(Tiers, AKnownScatterCountsBesideRepetitions) {
  // Single runs: a factor of five may be chance, ten is not.
  EXPECT_THAT(tiers({{1}, {5}, {10}}, 0.5), ElementsAre(1, 1, 2));
  // Few repetitions that happen to be alike do not hide it; more of them tell smaller differences
  // apart.
  EXPECT_THAT(tiers({{1, 1.01}, {1.5, 1.51}}, 0.5), ElementsAre(1, 1));
  EXPECT_THAT(tiers({{1, 1.1, 0.9, 1, 1}, {2.5, 2.4, 2.6, 2.5, 2.5}}, 0.5), ElementsAre(1, 2));
}

TEST(Tiers, LongWaitsAreKnownToScatter) {
  for (const char* figure : {"acquire.p99", "acquire.p999", "acquire_service.max",
                             "fairness.by_client.worst_p99", "fairness.longest_wait_seconds"}) {
    EXPECT_GT(known_scatter(figure), 0) << figure;
  }
  for (const char* figure : {"acquire.p50", "release.p99", "sections_per_second"}) {
    EXPECT_EQ(known_scatter(figure), 0) << figure;
  }
}

TEST(Tiers, WhatWasNotMeasuredHasNone) {
  EXPECT_THAT(tiers({{}, {1}}), ElementsAre(0, 1));
  EXPECT_THAT(tiers({}), IsEmpty());
}

}  // namespace
}  // namespace lockbench::results

#include "results/stats/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

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

}  // namespace
}  // namespace lockbench::results

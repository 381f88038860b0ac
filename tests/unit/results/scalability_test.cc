#include "results/stats/scalability.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lockbench::results {
namespace {

using Points = std::vector<ScalabilityPoint>;

Points points_of(const Scalability& law, std::initializer_list<double> clients) {
  Points points;
  for (const double n : clients) points.push_back({n, law.throughput(n)});
  return points;
}

TEST(Scalability, IsRecoveredFromItsOwnPoints) {
  const Scalability law{1000, 0.05, 0.002};
  const auto fitted = fit_scalability(points_of(law, {1, 2, 4, 8, 16, 32}));
  ASSERT_TRUE(fitted);
  EXPECT_NEAR(fitted->lambda, 1000, 1e-6);
  EXPECT_NEAR(fitted->sigma, 0.05, 1e-9);
  EXPECT_NEAR(fitted->kappa, 0.002, 1e-9);
  EXPECT_NEAR(*fitted->peak(), std::sqrt(0.95 / 0.002), 1e-3);
}

TEST(Scalability, OfAPublishedRayTracer) {
  // Gunther, Guerrilla Capacity Planning (2007), chapter 5: processors and rays per second. Fitted
  // there with sigma 0.05 and hardly any kappa.
  const Points points = {{1, 20},   {4, 78},   {8, 130},  {12, 170}, {16, 190}, {20, 200},
                         {24, 210}, {28, 230}, {32, 260}, {48, 280}, {64, 310}};
  const auto fitted = fit_scalability(points);
  ASSERT_TRUE(fitted);
  EXPECT_NEAR(fitted->lambda, 20, 2);
  EXPECT_NEAR(fitted->sigma, 0.05, 0.015);
  EXPECT_NEAR(fitted->kappa, 0, 1e-4);
}

TEST(Scalability, NeverHasANegativeTerm) {
  // Better than linear, and then worse than any contention.
  for (const Points& points : {Points{{1, 10}, {2, 25}, {4, 60}, {8, 130}},
                               Points{{1, 100}, {2, 20}, {4, 15}, {8, 14.5}, {16, 14.4}}}) {
    const auto fitted = fit_scalability(points);
    ASSERT_TRUE(fitted);
    EXPECT_GT(fitted->lambda, 0);
    EXPECT_GE(fitted->sigma, 0);
    EXPECT_GE(fitted->kappa, 0);
  }
}

TEST(Scalability, NeedsThreeNumbersOfClientsAndThroughput) {
  EXPECT_FALSE(fit_scalability(Points{}));
  EXPECT_FALSE(fit_scalability(Points{{1, 10}, {2, 20}, {2, 21}}));
  EXPECT_FALSE(fit_scalability(Points{{1, 10}, {2, 0}, {4, 30}}));
  EXPECT_TRUE(fit_scalability(Points{{1, 10}, {2, 18}, {4, 30}}));
}

TEST(Scalability, ALongerNetworkCostsEachHandoffARoundTrip) {
  // One lock, held for 2 ms: however many clients, 1 / (2 ms + 1 ms).
  const Scalability law{500, 1, 0};
  EXPECT_NEAR(law.throughput(1, 0.001, 2, 1), 250, 1e-9);
  EXPECT_NEAR(law.throughput(100'000, 0.001, 2, 1), 1000.0 / 3, 0.1);
  EXPECT_DOUBLE_EQ(law.throughput(8, 0, 2, 1), law.throughput(8));
}

}  // namespace
}  // namespace lockbench::results

#include "results/stats/tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockbench::results {
namespace {

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

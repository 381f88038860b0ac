#include <gtest/gtest.h>

#include "loadgen/run/workload.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

TEST(NamedLoad, DemandStaysBelowWhatOneKeyCanServe) {
  const auto points = points_of(NamedLoad::demand, {}, {});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].clients, 32);
  EXPECT_EQ(points[0].hold, DurationDistribution::exponential(2ms));
  // 30 % and 70 % of 1 / 2 ms.
  EXPECT_DOUBLE_EQ(points[0].rate.value(), 150);
  EXPECT_DOUBLE_EQ(points[1].rate.value(), 350);
}

TEST(NamedLoad, DemandCountsTheNetworkAndTheKeys) {
  Workload given;
  given.rtt = 2ms;
  EXPECT_DOUBLE_EQ(points_of(NamedLoad::demand, given, {.rtt = true})[1].rate.value(), 175);
  given.keys = 10;
  EXPECT_DOUBLE_EQ(points_of(NamedLoad::demand, given, {.rtt = true})[1].rate.value(), 1750);
}

TEST(NamedLoad, DemandCountsTheLocksOfASection) {
  Workload given;
  given.keys = 10;
  given.locks_per_section = 5;
  // Each key is in half of the sections.
  EXPECT_DOUBLE_EQ(busiest_key_share(given), 0.5);
  EXPECT_NEAR(points_of(NamedLoad::demand, given, {})[1].rate.value(), 700, 1e-6);
  given.rtt = 2ms;
  EXPECT_NEAR(points_of(NamedLoad::demand, given, {.rtt = true})[1].rate.value(), 700.0 / 6, 1e-6);
  given.key_skew = 5;
  EXPECT_DOUBLE_EQ(busiest_key_share(given), 1) << "no section wants a key twice";
}

TEST(NamedLoad, DemandCountsTheHotKeys) {
  Workload given;
  given.keys = 100;
  given.hot_set = HotSet{.share = 0.5, .keys = 10, .moves_every = {}};
  EXPECT_DOUBLE_EQ(busiest_key_share(given), 0.05);
  EXPECT_NEAR(points_of(NamedLoad::demand, given, {})[1].rate.value(), 7000, 1e-6);
  given.locks_per_section = 2;
  EXPECT_DOUBLE_EQ(busiest_key_share(given), 0.1);
  given.hot_set->share = 0.01;
  EXPECT_DOUBLE_EQ(busiest_key_share(given), 2 * 0.99 / 90) << "the others are wanted more";
}

TEST(NamedLoad, AloneIsMeasuredWithAndWithoutANetwork) {
  const auto points = points_of(NamedLoad::alone, {}, {});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].clients, 1);
  EXPECT_EQ(points[0].rtt, 0ms);
  EXPECT_EQ(points[1].rtt, 1ms);
  EXPECT_TRUE(points[0].hold.is_zero());
}

TEST(NamedLoad, SaturatedWorksUnderTheLockAndReacquireDoesNot) {
  const auto saturated = points_of(NamedLoad::saturated, {}, {});
  ASSERT_EQ(saturated.size(), 1U);
  EXPECT_EQ(saturated[0].hold, DurationDistribution::constant(1ms));
  EXPECT_EQ(saturated[0].rate, std::nullopt);
  EXPECT_TRUE(points_of(NamedLoad::reacquire, {}, {})[0].hold.is_zero());
}

TEST(NamedLoad, WhatTheUserDecidedWins) {
  Workload given;
  given.clients = 5;
  given.hold = DurationDistribution::constant(7ms);
  given.rate = 12;
  given.rtt = 3ms;
  const Decided all{.clients = true, .hold = true, .rate = true, .rtt = true};
  for (const NamedLoad load :
       {NamedLoad::alone, NamedLoad::demand, NamedLoad::saturated, NamedLoad::reacquire}) {
    const auto points = points_of(load, given, all);
    ASSERT_EQ(points.size(), 1U) << to_string(load);
    EXPECT_EQ(points[0].clients, 5);
    EXPECT_EQ(points[0].hold, given.hold);
    EXPECT_EQ(points[0].rate, 12);
    EXPECT_EQ(points[0].rtt, 3ms);
    EXPECT_EQ(points[0].load, to_string(load));
  }
}

}  // namespace
}  // namespace lockbench::loadgen

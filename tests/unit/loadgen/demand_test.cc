#include "loadgen/run/demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "loadgen/run/workload.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::unique_ptr<Demand> demand_of(const Workload& workload) {
  auto made = Demand::make(workload);
  EXPECT_TRUE(made) << made.error();
  return *std::move(made);
}

TEST(Demand, DrawsDifferentKeysForASection) {
  // With this skew nearly every draw is of the first key.
  for (const double skew : {0.0, 9.0}) {
    const Workload workload{.keys = 8, .key_skew = skew, .locks_per_section = 8};
    const auto demand = demand_of(workload);
    Random random(1);
    Transaction transaction;
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(demand->next(0, {}, random, transaction));
      std::set<int> keys;
      for (const Wanted& wanted : transaction.locks) keys.insert(wanted.key);
      ASSERT_EQ(transaction.locks.size(), 8U);
      ASSERT_EQ(keys.size(), 8U) << "twice the same lock";
    }
  }
}

TEST(Demand, IsTheSameForASeedAndDifferentForClients) {
  const Workload workload{.keys = 1000, .shared_share = 0.5, .locks_per_section = 3};
  const auto demand = demand_of(workload);
  const auto drawn = [&](std::uint64_t seed, std::uint64_t client) {
    Random random(seed, client);
    Transaction transaction;
    demand->next(static_cast<int>(client), {}, random, transaction);
    return transaction.locks;
  };
  EXPECT_EQ(drawn(1, 2), drawn(1, 2));
  EXPECT_NE(drawn(1, 2), drawn(1, 3));
  EXPECT_NE(drawn(1, 2), drawn(2, 2));
}

TEST(Demand, FollowsTheShareOfSharedLocks) {
  const Workload workload{.keys = 4, .shared_share = 0.25};
  const auto demand = demand_of(workload);
  Random random(3);
  Transaction transaction;
  int shared = 0;
  for (int i = 0; i < 10'000; ++i) {
    demand->next(0, {}, random, transaction);
    shared += transaction.locks.front().mode == Mode::shared ? 1 : 0;
  }
  EXPECT_NEAR(shared, 2500, 200);
}

TEST(Demand, PrefersTheKeysThatAreHotWhenTheSectionBegins) {
  const Workload workload{.keys = 100,
                          .hot_set = HotSet{.share = 0.9, .keys = 2, .moves_every = 10s}};
  const auto demand = demand_of(workload);
  Random random(3);
  Transaction transaction;
  const std::vector<std::pair<Duration, int>> moves = {{0s, 0}, {10s, 2}, {25s, 4}};
  for (const auto& [since_start, first] : moves) {
    int hot = 0;
    for (int i = 0; i < 1000; ++i) {
      demand->next(0, since_start, random, transaction);
      const int key = transaction.locks.front().key;
      hot += key == first || key == first + 1 ? 1 : 0;
    }
    EXPECT_NEAR(hot, 900, 60) << seconds(since_start);
  }
}

TEST(Demand, RefusesMoreLocksThanKeys) {
  const Workload workload{.keys = 2, .locks_per_section = 3};
  EXPECT_FALSE(Demand::make(workload));
}

std::vector<int> frequencies(const KeyChooser& chooser, int keys, int picks,
                             Duration since_start = {}) {
  Random random(11);
  std::vector<int> seen(static_cast<std::size_t>(keys));
  for (int i = 0; i < picks; ++i) {
    const int key = chooser.pick(random, since_start);
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
  for (const double skew : {0.0, 0.5, 1.0, 3.0}) {
    const auto seen = frequencies(KeyChooser(kKeys, skew), kKeys, kPicks);
    // 49 degrees of freedom: above 85 in one of a thousand samples.
    EXPECT_LT(chi_square(seen, skew, kPicks), 85.4) << skew;
  }
}

class HotSetTest : public testing::Test {
 protected:
  static constexpr int kKeys = 1000;

  /// The keys that are drawn far more often than others are, ascending.
  static std::set<int> hot_keys(const KeyChooser& chooser, Duration since_start) {
    constexpr int kPicks = 40'000;
    const auto seen = frequencies(chooser, kKeys, kPicks, since_start);
    std::set<int> hot;
    for (int key = 0; key < kKeys; ++key) {
      if (seen[static_cast<std::size_t>(key)] > kPicks / kKeys * 4) hot.insert(key);
    }
    return hot;
  }
  static KeyChooser chooser(const HotSet& hot) { return KeyChooser(kKeys, 0, hot); }
};

TEST_F(HotSetTest, MovesByItsSizeAndRoundTheEnd) {
  const KeyChooser moving = chooser({.share = 0.5, .keys = 3, .moves_every = 10s});
  EXPECT_EQ(hot_keys(moving, 0s), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(hot_keys(moving, 9999ms), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(hot_keys(moving, 10s), (std::set<int>{3, 4, 5}));
  EXPECT_EQ(hot_keys(moving, 333 * 10s), (std::set<int>{0, 1, 999}));
  EXPECT_EQ(hot_keys(moving, 10'000h).size(), 3U) << "however long it runs";
}

TEST_F(HotSetTest, IsWrittenAsItIsRead) {
  for (const char* text : {"share=50%,keys=2500,move=10s", "share=0.5%,keys=1",
                           "share=33.3%,keys=7,move=1ms", "share=100%,keys=3"}) {
    const auto hot = HotSet::parse(text);
    ASSERT_TRUE(hot) << hot.error();
    EXPECT_EQ(hot->to_string(), text);
  }
  EXPECT_EQ(HotSet::parse("move=2s,keys=5,share=10%")->to_string(), "share=10%,keys=5,move=2s");
}

TEST_F(HotSetTest, EverythingElseIsRefused) {
  for (const char* text :
       {"", "50%", "share=50%", "keys=5", "share=50,keys=5", "share=0%,keys=5", "share=101%,keys=5",
        "share=nan%,keys=5", "share=50%,keys=0", "share=50%,keys=-1", "share=50%,keys=x",
        "share=50%,keys=5,move=0s", "share=50%,keys=5,move=5", "share=50%,keys=5,move=-1s",
        "share=50%,keys=5,,", "share=50%,keys=5,speed=1"}) {
    const auto hot = HotSet::parse(text);
    ASSERT_FALSE(hot) << text;
    EXPECT_THAT(hot.error(), HasSubstr("share=50%,keys=2500,move=10s"));
  }
}

TEST(KeyChooser, NonsenseIsAProgrammingError) {
  EXPECT_THROW(KeyChooser(0, 0), std::invalid_argument);
  EXPECT_THROW(KeyChooser(5, -0.1), std::invalid_argument);
  EXPECT_THROW(KeyChooser(5, 0, HotSet{.share = 0.5, .keys = 5}), std::invalid_argument);
  EXPECT_THROW(KeyChooser(5, 1, HotSet{.share = 0.5, .keys = 2}), std::invalid_argument);
  EXPECT_THROW(KeyChooser(5, std::numeric_limits<double>::quiet_NaN()), std::invalid_argument);
}

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

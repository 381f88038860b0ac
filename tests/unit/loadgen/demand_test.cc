#include "loadgen/run/demand.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace lockbench::loadgen

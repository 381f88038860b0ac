#include "loadgen/run/demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <latch>
#include <set>
#include <thread>
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
  // With this skew nearly every draw is the first key.
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

/// Pearson's chi-squared statistic against weights of 1/(k+1)^skew.
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

TEST(HotSet, MovesByItsSizeAndRoundTheEnd) {
  constexpr int kKeys = 1000, kPicks = 40'000;
  const KeyChooser moving(kKeys, 0, HotSet{.share = 0.5, .keys = 3, .moves_every = 10s});
  // The keys drawn far more often than others, ascending.
  const auto hot_keys = [&](Duration since_start) {
    const auto seen = frequencies(moving, kKeys, kPicks, since_start);
    std::set<int> hot;
    for (int key = 0; key < kKeys; ++key) {
      if (seen[static_cast<std::size_t>(key)] > kPicks / kKeys * 4) hot.insert(key);
    }
    return hot;
  };
  EXPECT_EQ(hot_keys(0s), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(hot_keys(9999ms), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(hot_keys(10s), (std::set<int>{3, 4, 5}));
  EXPECT_EQ(hot_keys(333 * 10s), (std::set<int>{0, 1, 999}));
  EXPECT_EQ(hot_keys(10'000h).size(), 3U) << "however long it runs";
}

TEST(HotSet, IsWrittenAsItIsRead) {
  for (const char* text : {"share=50%,keys=2500,move=10s", "share=0.5%,keys=1",
                           "share=33.3%,keys=7,move=1ms", "share=100%,keys=3"}) {
    const auto hot = HotSet::parse(text);
    ASSERT_TRUE(hot) << hot.error();
    EXPECT_EQ(hot->to_string(), text);
  }
  EXPECT_EQ(HotSet::parse("move=2s,keys=5,share=10%")->to_string(), "share=10%,keys=5,move=2s");
}

TEST(HotSet, EverythingElseIsRefused) {
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

TEST(NamedLoad, DemandStaysBelowWhatOneKeyCanServe) {
  const auto points = points_of(NamedLoad::demand, {}, {});
  ASSERT_EQ(points.size(), 2U);
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

constexpr TimePoint kStart{std::chrono::seconds(1000)};

std::vector<TimePoint> take(Schedule& schedule, std::size_t count) {
  std::vector<TimePoint> times;
  for (std::size_t i = 0; i < count; ++i) times.push_back(schedule.next());
  return times;
}

TEST(Schedule, ConstantSpacingIsExactAndDoesNotDrift) {
  Schedule thousand(1000, Arrival::constant, kStart, 1);
  for (int n = 0; n < 5000; ++n) {
    ASSERT_EQ(thousand.next(), kStart + std::chrono::milliseconds(n));
  }
  // A third of a second has no end in nanoseconds; the millionth start is still right.
  Schedule thirds(3, Arrival::constant, kStart, 1);
  TimePoint last{};
  for (int n = 0; n <= 300'000; ++n) last = thirds.next();
  EXPECT_EQ(last, kStart + std::chrono::seconds(100'000));
  // An absurdly low rate stays within time.
  Schedule slow(1e-300, Arrival::constant, kStart, 1);
  EXPECT_EQ(slow.next(), kStart);
  EXPECT_GT(slow.next(), kStart + std::chrono::hours(24 * 365));
}

TEST(Schedule, PoissonGapsAreExponential) {
  constexpr std::size_t kCount = 20'000;
  Schedule schedule(1000, Arrival::poisson, kStart, 7);
  std::vector<double> gaps;  // in units of the mean gap
  TimePoint previous = kStart;
  for (std::size_t i = 0; i < kCount; ++i) {
    const TimePoint next = schedule.next();
    ASSERT_GE(next, previous);
    gaps.push_back(static_cast<double>((next - previous).count()) / 1e6);
    previous = next;
  }
  // Kolmogorov and Smirnov: at this distance one sample in a thousand would be rejected wrongly.
  std::sort(gaps.begin(), gaps.end());
  double distance = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double theory = 1 - std::exp(-gaps[i]);
    distance = std::max({distance, std::abs(theory - static_cast<double>(i) / kCount),
                         std::abs(static_cast<double>(i + 1) / kCount - theory)});
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(double{kCount}));
}

TEST(Schedule, SeveralClientsShareOneSequence) {
  constexpr std::size_t kClients = 4;
  constexpr std::size_t kEach = 20'000;
  for (const Arrival arrival : {Arrival::constant, Arrival::poisson}) {
    Schedule alone(1e6, arrival, kStart, 9);
    const auto expected = take(alone, kClients * kEach);

    Schedule shared(1e6, arrival, kStart, 9);
    std::vector<std::vector<TimePoint>> taken(kClients);
    {
      std::latch all_there(kClients);
      std::vector<std::jthread> clients;
      clients.reserve(kClients);
      for (auto& mine : taken) {
        clients.emplace_back([&] {
          all_there.arrive_and_wait();
          mine = take(shared, kEach);
        });
      }
    }
    std::vector<TimePoint> all;
    for (const auto& mine : taken) {
      EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
      all.insert(all.end(), mine.begin(), mine.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, expected);
  }
}

TEST(Schedule, StartsThatNobodyTakesAreCounted) {
  Schedule constant(1000, Arrival::constant, kStart, 1);
  take(constant, 10);
  const auto rest = constant.due_before(kStart + std::chrono::milliseconds(100));
  EXPECT_EQ(rest.count, 90U);
  EXPECT_EQ(rest.longest, std::chrono::milliseconds(90));
  EXPECT_EQ(constant.due_before(kStart).count, 0U);

  // Too many to take them one by one.
  Schedule poisson(1e7, Arrival::poisson, kStart, 1);
  EXPECT_NEAR(static_cast<double>(poisson.due_before(kStart + std::chrono::hours(1)).count), 3.6e10,
              1e6);
}

constexpr int kRanks = 4;

/// By the number of clients.
class SharesOf : public testing::TestWithParam<int> {
 protected:
  static Share share(int rank) { return {rank, kRanks, GetParam()}; }
};

TEST_P(SharesOf, EachClientIsInOneOfThem) {
  std::multiset<int> numbers;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int i = 0; i < share(rank).count(); ++i) numbers.insert(share(rank).number(i));
  }
  ASSERT_EQ(static_cast<int>(numbers.size()), GetParam());
  int expected = 0;
  for (const int number : numbers) EXPECT_EQ(number, expected++);
}

TEST_P(SharesOf, EachTurnIsTakenByOneInProportionToItsClients) {
  constexpr std::uint64_t kTurns = 10'007;
  std::uint64_t all = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    std::uint64_t taken = 0;
    for (std::uint64_t turn = 0; turn < kTurns; ++turn) taken += share(rank).takes(turn) ? 1 : 0;
    EXPECT_EQ(taken, share(rank).part_of(kTurns));
    EXPECT_NEAR(static_cast<double>(taken) / kTurns,
                static_cast<double>(share(rank).count()) / GetParam(), 0.01);
    all += taken;
  }
  EXPECT_EQ(all, kTurns);
}

INSTANTIATE_TEST_SUITE_P(Clients, SharesOf, testing::Values(1, 3, 4, 10, 2001));

TEST(Share, NoneOfThemTakesManyTurnsInARow) {
  const Share share{0, kRanks, 8};
  for (std::uint64_t turn = 0; turn < 64; ++turn) {
    EXPECT_FALSE(share.takes(turn) && share.takes(turn + 1)) << turn;
  }
}

TEST(Share, TheSchedulesOfAllTogetherAreThatOfOneProcess) {
  const TimePoint start{};
  for (const Arrival arrival : {Arrival::constant, Arrival::poisson}) {
    std::vector<TimePoint> together, alone;
    Schedule whole(1000, arrival, start, 7);
    for (int i = 0; i < 1000; ++i) alone.push_back(whole.next());
    for (int rank = 0; rank < kRanks; ++rank) {
      Schedule part(1000, arrival, start, 7, {rank, kRanks, 10});
      for (TimePoint next = part.next(); next <= alone.back(); next = part.next()) {
        together.push_back(next);
      }
    }
    std::sort(together.begin(), together.end());
    EXPECT_EQ(together, alone);
  }
}

TEST(Share, WhatAScheduleDidNotIssueIsCountedByTheSharesOwnRate) {
  Schedule part(1000, Arrival::constant, TimePoint(), 7, {1, kRanks, 8});
  EXPECT_NEAR(static_cast<double>(part.due_before(TimePoint() + 10s).count), 2500, 2);
}

TEST(Schedule, KnowsThatItHasPassedATimeWithoutIssuingAStart) {
  Schedule schedule(10, Arrival::poisson, TimePoint(), 1),
      same(10, Arrival::poisson, TimePoint(), 1);
  for (int i = 0; i < 20; ++i) {
    const TimePoint next = same.next();
    EXPECT_TRUE(schedule.has_passed(next));
    EXPECT_FALSE(schedule.has_passed(next + 1ns));
    EXPECT_EQ(schedule.next(), next);
  }
}

}  // namespace
}  // namespace lockbench::loadgen

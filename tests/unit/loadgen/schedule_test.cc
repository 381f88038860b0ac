#include "loadgen/run/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <latch>
#include <limits>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "loadgen/run/workload.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

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

TEST(Schedule, ARateMustBeAboveZeroAndFinite) {
  for (const double rate : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(Schedule(rate, Arrival::constant, kStart, 1), std::invalid_argument) << rate;
  }
}

TEST(Schedule, AnAbsurdlyLowRateStaysWithinTime) {
  Schedule schedule(1e-300, Arrival::constant, kStart, 1);
  EXPECT_EQ(schedule.next(), kStart);
  EXPECT_GT(schedule.next(), kStart + std::chrono::hours(24 * 365));
}

TEST(Schedule, StartsThatNobodyTakesAreCounted) {
  Schedule constant(1000, Arrival::constant, kStart, 1);
  take(constant, 10);
  const auto rest = constant.due_before(kStart + std::chrono::milliseconds(100));
  EXPECT_EQ(rest.count, 90U);
  EXPECT_EQ(rest.longest, std::chrono::milliseconds(90));
  EXPECT_EQ(constant.due_before(kStart).count, 0U);

  // Too many to take one by one.
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

}  // namespace
}  // namespace lockbench::loadgen

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "loadgen/run/demand.h"
#include "loadgen/run/workload.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

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

TEST(Share, TheOnlyOneHasAllAndTakesAll) {
  const Share all{.clients = 5};
  EXPECT_EQ(all.count(), 5);
  EXPECT_EQ(all.number(3), 3);
  EXPECT_EQ(all.part_of(17), 17U);
}

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

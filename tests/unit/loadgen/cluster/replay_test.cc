#include "loadgen/cluster/replay.h"

#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/support/run_shared.h"

namespace lockbench::loadgen::cluster {
namespace {

using namespace std::chrono_literals;
using Happened = LockEvent::Kind;

constexpr TimePoint kStart{100s};

class ReplayTest : public testing::Test {
 protected:
  static constexpr int kRanks = 2;

  ReplayTest() { run_.shared().measure_start = kStart; }

  /// A section of the rank's only client.
  void section(int rank, Duration asks, Duration granted, Duration left,
               Mode mode = Mode::exclusive) {
    tell(rank, {.at = kStart + asks, .kind = Happened::waits, .mode = mode});
    tell(rank,
         {.at = kStart + granted, .span = granted - asks, .kind = Happened::granted, .mode = mode});
    tell(rank, {.at = kStart + left, .kind = Happened::releases, .mode = mode});
    tell(rank, {.at = kStart + left + 10us,
                .span = 10us,
                .kind = Happened::released,
                .mode = mode,
                .flag = true});
  }
  void tell(int rank, LockEvent event) {
    event.client = rank;
    event.phase = Phase::measured;
    events_[static_cast<std::size_t>(rank)].push_back(event);
  }
  /// A section whose grant has a number. `counted`: the rank itself found it too low.
  void numbered(int rank, Duration asks, std::uint64_t fencing, bool counted = false) {
    section(rank, asks, asks + 1ms, asks + 2ms);
    LockEvent& grant = *(events_[static_cast<std::size_t>(rank)].end() - 3);
    grant.fencing = fencing;
    grant.flag = counted;
  }
  AuditTotals judge(Duration bound = 0us) {
    for (int rank = 0; rank < kRanks; ++rank) {
      replay_.add(rank, events_[static_cast<std::size_t>(rank)], kStart + 1h,
                  {.bound = rank == 0 ? 0us : bound});
    }
    replay_.advance();
    replay_.finish(kStart + 2h);
    return run_.shared().audit.totals();
  }
  std::uint64_t count(Count what) { return run_.recorder().totals()[what]; }

  test::RunUnderTest run_{*find_strategy("none"), kRanks};
  Replay replay_{run_.shared(), kRanks};
  std::vector<LockEvent> events_[kRanks];
};

TEST_F(ReplayTest, SectionsOfTwoRanksAtOnceOverlap) {
  section(0, 0ms, 1ms, 5ms);
  section(1, 0ms, 3ms, 8ms);
  const AuditTotals totals = judge(50us);
  EXPECT_EQ(totals.overlaps, 1U);
  EXPECT_EQ(totals.undecided, 0U);
  EXPECT_EQ(totals.overlap_time, 2ms);
}

TEST_F(ReplayTest, SectionsOneAfterTheOtherDoNot) {
  section(0, 0ms, 1ms, 5ms);
  section(1, 0ms, 6ms, 8ms);
  const AuditTotals totals = judge(50us);
  EXPECT_EQ(totals.overlaps, 0U);
  EXPECT_EQ(totals.undecided, 0U);
}

TEST_F(ReplayTest, WhatTheClocksCannotTellIsUndecided) {
  section(0, 0ms, 1ms, 5ms);
  section(1, 0ms, 5ms - 30us, 8ms);
  EXPECT_EQ(judge(50us).overlaps, 0U);
  EXPECT_EQ(run_.shared().audit.totals().undecided, 1U);
}

TEST_F(ReplayTest, AGapThatIsWithinTheBoundsIsUndecidedToo) {
  section(0, 0ms, 1ms, 5ms);
  section(1, 0ms, 5ms + 30us, 8ms);
  EXPECT_EQ(judge(50us).undecided, 1U);
}

/// The grant and the release are told with a bound each, and are 300 us within other sections.
class UncertainSection : public ReplayTest,
                         public testing::WithParamInterface<std::pair<Duration, Duration>> {};

TEST_P(UncertainSection, IsAsUncertainAsTheClockWasThen) {
  section(0, 0ms, 1ms, 5ms);
  section(1, 0ms, 5ms - 300us, 8ms);
  section(0, 5ms, 8ms - 300us, 9ms);
  const auto release = events_[1].begin() + 2;
  replay_.add(1, {events_[1].begin(), release}, kStart + 6ms, {.bound = GetParam().first});
  replay_.add(1, {release, events_[1].end()}, kStart + 10ms, {.bound = GetParam().second});
  replay_.add(1, {}, kStart + 1h, {.bound = 1us});
  replay_.add(0, events_[0], kStart + 1h, {});
  replay_.advance();
  EXPECT_EQ(run_.shared().audit.totals().overlaps, 0U);
  EXPECT_EQ(run_.shared().audit.totals().undecided, 2U);
}
INSTANTIATE_TEST_SUITE_P(Bounds, UncertainSection,
                         testing::Values(std::pair{1000us, 1us}, std::pair{1us, 1000us}));

TEST_F(ReplayTest, ACorrectedClockDoesNotChangeTheOrderWithinARank) {
  section(0, 0ms, 1ms, 5ms);
  section(1, 5ms, 5ms + 50us, 8ms);
  section(0, 8ms, 8ms + 50us, 9ms);
  // All of them on rank 1, which after the first corrects what it takes for rank 0's time.
  const auto corrected = [&](std::vector<LockEvent> events) {
    for (LockEvent& event : events) event.at -= 700us;
    return events;
  };
  const auto middle = events_[0].begin() + 4;
  replay_.add(1, {events_[0].begin(), middle}, kStart + 6ms, {.offset = 700us, .bound = 1ms});
  replay_.add(1, corrected(events_[1]), kStart + 8ms, {.bound = 1us});
  replay_.add(1, corrected({middle, events_[0].end()}), kStart + 1h, {.bound = 1us});
  replay_.lose(0);
  replay_.advance();
  EXPECT_EQ(run_.shared().audit.totals().overlaps, 0U);
  EXPECT_EQ(run_.shared().audit.totals().undecided, 0U);
  EXPECT_EQ(count(Count::contended_grants), 0U);
}

TEST_F(ReplayTest, ACorrectionThatChangesTheOrderWithinARankIsNoOverlap) {
  section(0, 0ms, 1ms, 2ms);
  section(1, 2ms, 2ms + 50us, 3ms);
  replay_.add(1, events_[0], kStart + 3ms, {.offset = 5ms, .bound = 6ms});
  // The same rank, by a clock that is right now: before the first, as that was told.
  for (LockEvent& event : events_[1]) event.at -= 5ms;
  replay_.add(1, events_[1], kStart + 1h, {.bound = 1us});
  replay_.lose(0);
  replay_.advance();
  EXPECT_EQ(run_.shared().audit.totals().overlaps, 0U);
}

TEST_F(ReplayTest, ASharedLockMayBeHeldByTwoRanks) {
  section(0, 0ms, 1ms, 5ms, Mode::shared);
  section(1, 0ms, 3ms, 8ms, Mode::shared);
  EXPECT_EQ(judge().overlaps, 0U);
}

TEST_F(ReplayTest, RanksThatShareALockDoNotContendForIt) {
  section(0, 0ms, 1ms, 5ms, Mode::shared);
  section(1, 2ms, 3ms, 8ms, Mode::shared);
  judge();
  EXPECT_EQ(count(Count::contended_grants), 0U);
  EXPECT_EQ(run_.recorder().histograms(Phase::measured)[Timing::uncontended].snapshot().count(),
            2U);
}

TEST_F(ReplayTest, AnExclusiveLockMayNotBesideASharedOne) {
  section(0, 0ms, 1ms, 5ms, Mode::shared);
  section(1, 0ms, 3ms, 8ms);
  EXPECT_EQ(judge().overlaps, 1U);
}

TEST_F(ReplayTest, AClientThatStaysOverlapsWithAllThatComeMeanwhile) {
  section(0, 0ms, 1ms, 100ms);
  for (int i = 0; i < 5; ++i) section(1, 10ms * i, 10ms * i + 2ms, 10ms * i + 5ms);
  EXPECT_EQ(judge(50us).overlaps, 5U);
}

TEST_F(ReplayTest, TheHandoffToAWaiterOfAnotherRankIsMeasured) {
  section(0, 0ms, 1ms, 5ms);
  section(1, 2ms, 6ms, 8ms);
  judge();
  EXPECT_EQ(count(Count::awaited_releases), 1U);
  EXPECT_EQ(count(Count::direct_handoffs), 1U);
  EXPECT_EQ(count(Count::contended_grants), 1U);  // nobody else wanted the lock at first
  const auto handoff = run_.recorder().histograms(Phase::measured)[Timing::handoff].snapshot();
  ASSERT_EQ(handoff.count(), 1U);
  EXPECT_EQ(handoff.max, 1ms);
}

TEST_F(ReplayTest, AStreakEndsWithAGrantToAnotherRank) {
  for (int i = 0; i < 3; ++i) section(0, 10ms * i, 10ms * i + 1ms, 10ms * i + 2ms);
  section(1, 40ms, 41ms, 42ms);
  section(0, 50ms, 51ms, 52ms);
  EXPECT_EQ(judge().longest_streak, 3U);
}

TEST_F(ReplayTest, FencingNumbersThatGrowFromRankToRankAreFine) {
  for (int i = 0; i < 6; ++i) numbered(i % 2, 10ms * i, static_cast<std::uint64_t>(i));
  EXPECT_EQ(judge(50us).fence_regressions, 0U);
}

TEST_F(ReplayTest, ANumberBelowThatOfAnotherRankIsARegression) {
  numbered(0, 0ms, 10);
  numbered(1, 10ms, 5);
  numbered(1, 20ms, 7);  // 5 did not lower the mark
  EXPECT_EQ(judge(50us).fence_regressions, 2U);
}

TEST_F(ReplayTest, ANumberThatItsRankFoundTooLowIsCountedThere) {
  numbered(0, 0ms, 10);
  numbered(1, 10ms, 5, true);
  EXPECT_EQ(judge(50us).fence_regressions, 0U);
}

TEST_F(ReplayTest, ANumberMayBeLowerIfTheClocksCannotTellWhoAskedFirst) {
  numbered(0, 0ms, 10);  // granted after 1 ms
  numbered(1, 1ms + 30us, 5);
  EXPECT_EQ(judge(50us).fence_regressions, 0U);
}

TEST_F(ReplayTest, WhatIsNoPartOfTheRunIsIgnored) {
  section(0, 0ms, 1ms, 5ms);
  for (LockEvent& event : events_[0]) event.key = 77;
  section(1, 0ms, 3ms, 8ms);
  for (LockEvent& event : events_[1]) event.phase = static_cast<Phase>(9);
  tell(0, {.at = kStart, .key = -1});
  EXPECT_EQ(judge().overlaps, 0U);
  EXPECT_EQ(count(Count::contended_grants), 0U);
}

TEST_F(ReplayTest, NothingIsJudgedBeforeAllRanksHaveTold) {
  section(0, 0ms, 1ms, 5ms);
  section(1, 0ms, 3ms, 8ms);
  replay_.add(0, events_[0], kStart + 1h, {});
  replay_.advance();
  EXPECT_EQ(count(Count::contended_grants), 0U);
  replay_.add(1, events_[1], kStart + 1h, {});
  replay_.advance();
  EXPECT_EQ(count(Count::contended_grants), 2U);
}

TEST_F(ReplayTest, ARankThatWasLostWhileItHeldTheLockAccusesNobody) {
  tell(0, {.at = kStart, .kind = Happened::waits});
  tell(0, {.at = kStart + 1ms, .span = 1ms, .kind = Happened::granted});
  for (int i = 1; i < 50; ++i) section(1, 100ms * i, 100ms * i + 1ms, 100ms * i + 2ms);
  replay_.add(0, events_[0], kStart + 2ms, {});
  replay_.add(1, events_[1], kStart + 1h, {});
  replay_.lose(0);
  replay_.advance();
  replay_.finish(kStart + 2h);
  EXPECT_EQ(run_.shared().audit.totals().overlaps, 0U);
  EXPECT_EQ(count(Count::contended_grants), 49U);
}

}  // namespace
}  // namespace lockbench::loadgen::cluster

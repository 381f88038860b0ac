#include "loadgen/record/audit.h"

#include <gtest/gtest.h>

#include <barrier>
#include <mutex>
#include <thread>
#include <vector>

namespace lockbench::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr auto kExclusive = Mode::exclusive;
constexpr auto kShared = Mode::shared;
constexpr TimePoint kOrigin{std::chrono::hours(10'000)};

TimePoint at(int nanosecond) { return kOrigin + nanoseconds(nanosecond); }

/// An audit whose calls need only what the test is about.
class AuditTest : public testing::Test {
 protected:
  Entry enter(Mode mode, int time, int key = 0) {
    return audit_.enter(key, 0, mode, std::nullopt, audit_.begin_acquire(key), at(time));
  }
  void leave(Entry entry, int time, int key = 0) { audit_.leave(key, entry, at(time)); }

  /// One section with a fencing number, all other things being right.
  void pass(std::uint64_t fencing, int key = 0) { pass(fencing, audit_.begin_acquire(key), key); }
  void pass(std::uint64_t fencing, AcquireMark mark, int key = 0) {
    audit_.leave(key, audit_.enter(key, 0, kExclusive, fencing, mark, at(0)), at(0));
  }
  void grant_to(int client, int key = 0) {
    leave(audit_.enter(key, client, kExclusive, std::nullopt, {}, at(0)), 0, key);
  }

  Audit audit_{2, kOrigin};
};

TEST_F(AuditTest, TwoExclusiveOnesOverlap) {
  const Entry first = enter(kExclusive, 10);
  const Entry second = enter(kExclusive, 30);
  leave(first, 75);
  leave(second, 90);
  EXPECT_EQ(audit_.totals(at(100)).overlaps, 1U);
  EXPECT_EQ(audit_.totals(at(100)).overlap_time, nanoseconds(45));
}

TEST_F(AuditTest, AnOverlapLastsUntilNoConflictingPairIsLeft) {
  const Entry first = enter(kExclusive, 0);
  const Entry second = enter(kExclusive, 10);
  const Entry third = enter(kShared, 20);
  leave(first, 30);
  leave(second, 50);
  leave(third, 90);
  EXPECT_EQ(audit_.totals(at(100)).overlaps, 2U);
  EXPECT_EQ(audit_.totals(at(100)).overlap_time, nanoseconds(40));
}

TEST_F(AuditTest, SharedOnesMayBeInsideTogether) {
  const Entry first = enter(kShared, 0);
  const Entry second = enter(kShared, 0);
  EXPECT_EQ(audit_.totals(at(5)).overlaps, 0U);
  const Entry writer = enter(kExclusive, 10);
  EXPECT_EQ(audit_.totals(at(15)).overlaps, 1U);
  leave(first, 20);
  leave(second, 30);
  leave(writer, 40);
  EXPECT_EQ(audit_.totals(at(50)).overlap_time, nanoseconds(20));
}

TEST_F(AuditTest, ASharedOneMustNotJoinAnExclusiveOne) {
  const Entry writer = enter(kExclusive, 0);
  const Entry reader = enter(kShared, 10);
  const Entry another = enter(kShared, 20);
  leave(writer, 50);
  leave(reader, 60);
  leave(another, 70);
  EXPECT_EQ(audit_.totals(at(80)).overlaps, 2U);
  EXPECT_EQ(audit_.totals(at(80)).overlap_time, nanoseconds(40));
}

TEST_F(AuditTest, AnOverlapCountsWhileItLasts) {
  const Entry first = enter(kExclusive, 0);
  const Entry second = enter(kExclusive, 10);
  EXPECT_EQ(audit_.totals(at(25)).overlap_time, nanoseconds(15));
  EXPECT_EQ(audit_.totals(at(35)).overlap_time, nanoseconds(25));
  leave(first, 40);
  leave(second, 41);
  EXPECT_EQ(audit_.totals(at(90)).overlap_time, nanoseconds(30));
}

TEST(IntervalSum, EndsMayBeReportedBeforeBeginnings) {
  IntervalSum sum;
  sum.end(nanoseconds(50));
  EXPECT_EQ(sum.total(nanoseconds(50)), Duration::zero());
  sum.begin(nanoseconds(20));
  EXPECT_EQ(sum.total(nanoseconds(60)), nanoseconds(30));
  sum.begin(nanoseconds(100));
  EXPECT_EQ(sum.total(nanoseconds(105)), nanoseconds(35));
  sum.end(nanoseconds(110));
  EXPECT_EQ(sum.total(nanoseconds(500)), nanoseconds(40));
}

TEST(IntervalSum, HoldsAYear) {
  IntervalSum sum;
  const Duration year = std::chrono::hours(24 * 365);
  sum.begin(nanoseconds(1));
  EXPECT_EQ(sum.total(year), year - nanoseconds(1));
  sum.end(year);
  EXPECT_EQ(sum.total(year), year - nanoseconds(1));
}

TEST_F(AuditTest, GrowingFencingNumbersAreFine) {
  for (const std::uint64_t number : {0U, 1U, 2U, 10U, 11U}) pass(number);
  pass(1, 1);
  EXPECT_EQ(audit_.totals().fence_regressions, 0U);
}

TEST_F(AuditTest, RepeatedAndDecreasingFencingNumbersAreRegressions) {
  for (const std::uint64_t number : {0U, 0U, 7U, 7U, 7U}) pass(number);
  EXPECT_EQ(audit_.totals().fence_regressions, 3U);
  pass(9);
  pass(8);
  pass(9);  // 8 did not lower the mark
  pass(10);
  EXPECT_EQ(audit_.totals().fence_regressions, 5U);
}

TEST_F(AuditTest, AStoreThatLostItsNumbersIsOneResetAndManyRegressions) {
  for (const std::uint64_t number : {100U, 101U, 1U, 2U, 3U}) pass(number);
  EXPECT_EQ(audit_.fence_regressions(), 3U);
  EXPECT_EQ(audit_.fence_resets(), 1U);
  for (const std::uint64_t number : {1U, 2U, 102U, 103U}) pass(number);
  EXPECT_EQ(audit_.fence_resets(), 2U);
  EXPECT_EQ(audit_.fence_regressions(), 5U);
}

TEST_F(AuditTest, ThoseWhoShareMayShareTheirNumber) {
  const auto pass_as = [&](Mode mode, std::uint64_t number) {
    const AcquireMark mark = audit_.begin_acquire(0);
    audit_.leave(0, audit_.enter(0, 0, mode, number, mark, at(0)), at(0));
    return audit_.totals().fence_regressions;
  };
  EXPECT_EQ(pass_as(kExclusive, 4), 0U);
  EXPECT_EQ(pass_as(kShared, 5), 0U);
  EXPECT_EQ(pass_as(kShared, 5), 0U);
  EXPECT_EQ(pass_as(kExclusive, 6), 0U);
  // But not with an exclusive one, before them or after them, nor may it decrease.
  EXPECT_EQ(pass_as(kShared, 6), 1U);
  EXPECT_EQ(pass_as(kShared, 7), 1U);
  EXPECT_EQ(pass_as(kExclusive, 7), 2U);
  EXPECT_EQ(pass_as(kShared, 6), 3U);
}

TEST_F(AuditTest, OnlyAcquisitionsThatHadCompletedCount) {
  // Both were under way at once: the store numbered them in one order, the clients learned in the
  // other.
  const AcquireMark first = audit_.begin_acquire(0);
  const AcquireMark second = audit_.begin_acquire(0);
  pass(6, second);
  pass(5, first);
  EXPECT_EQ(audit_.totals().fence_regressions, 0U);
  EXPECT_EQ(audit_.fence_resets(), 0U);
  pass(5, audit_.begin_acquire(0));
  EXPECT_EQ(audit_.totals().fence_regressions, 1U);
}

TEST_F(AuditTest, TheLongestStreakIsOneClientsOnOneKey) {
  grant_to(0);
  EXPECT_EQ(audit_.totals().longest_streak, 1U);
  for (int i = 0; i < 3; ++i) grant_to(1);
  for (int i = 0; i < 2; ++i) grant_to(2);
  for (int i = 0; i < 3; ++i) grant_to(2, 1);
  EXPECT_EQ(audit_.totals().longest_streak, 3U);
  for (int i = 0; i < 3; ++i) grant_to(2);
  EXPECT_EQ(audit_.totals().longest_streak, 5U);
}

/// Later than any tick before, on any thread.
TimePoint tick() {
  static std::atomic<Duration::rep> ticks{0};
  return TimePoint(std::chrono::hours(24 * 365) + Duration(++ticks));
}

/// Threads in the sections of a lock. `Lock` has lock() and unlock().
template <class Lock>
AuditTotals contend(Lock& lock) {
  constexpr int kThreads = 4;
  constexpr int kSections = 3'000;
  Audit audit(1);
  std::atomic<std::uint64_t> number{0};
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int client = 0; client < kThreads; ++client) {
      threads.emplace_back([&, client] {
        for (int i = 0; i < kSections; ++i) {
          const AcquireMark mark = audit.begin_acquire(0);
          lock.lock();
          const Entry entry = audit.enter(0, client, kExclusive, ++number, mark, tick());
          if (i % 16 == 0) std::this_thread::yield();
          audit.leave(0, entry, tick());
          lock.unlock();
        }
      });
    }
    // A reader at any time must not disturb, and must not see nonsense.
    for (int i = 0; i < 200; ++i) {
      const Duration overlap = audit.totals().overlap_time;
      EXPECT_LT(overlap, std::chrono::hours(1));
    }
  }
  return audit.totals();
}

TEST(Audit, ARightLockStaysAtZero) {
  std::mutex mutex;
  const AuditTotals totals = contend(mutex);
  EXPECT_EQ(totals.overlaps, 0U);
  EXPECT_EQ(totals.overlap_time, Duration::zero());
  EXPECT_EQ(totals.fence_regressions, 0U);
}

/// Lets two in at a time; they meet inside for certain, as nobody goes on alone.
TEST(Audit, ALockThatLetsTwoInIsCaught) {
  constexpr int kRounds = 100;
  Audit audit(1);
  std::barrier meet(2);
  const auto client = [&](int number) {
    for (int i = 0; i < kRounds; ++i) {
      const Entry entry = audit.enter(0, number, kExclusive, std::nullopt, {}, tick());
      meet.arrive_and_wait();
      audit.leave(0, entry, tick());
      meet.arrive_and_wait();
    }
  };
  {
    const std::jthread first(client, 0);
    const std::jthread second(client, 1);
  }
  EXPECT_EQ(audit.totals().overlaps, std::uint64_t{kRounds});
  EXPECT_GT(audit.totals().overlap_time, Duration::zero());
  EXPECT_EQ(audit.totals().overlap_time, audit.totals(tick()).overlap_time);
}

}  // namespace
}  // namespace lockbench::loadgen

#include "loadgen/record/audit.h"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>
#include <vector>

namespace lockbench::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr auto kExclusive = Mode::exclusive;
constexpr auto kShared = Mode::shared;
constexpr TimePoint kOrigin{std::chrono::hours(10'000)};

TimePoint at(int nanosecond) { return kOrigin + nanoseconds(nanosecond); }

/// An audit whose calls only need the arguments that matter to the test.
class AuditTest : public testing::Test {
 protected:
  void enter(int time) { audit_.enter(0, 0, kExclusive, std::nullopt, {}, at(time)); }
  void leave(int time) { audit_.leave(0, kExclusive, at(time)); }

  /// One correct section with this fencing number.
  void pass(std::uint64_t fencing, int key = 0) { pass(fencing, audit_.begin_acquire(key), key); }
  void pass(std::uint64_t fencing, AcquireMark mark, int key = 0) {
    audit_.enter(key, 0, kExclusive, fencing, mark, at(0));
    audit_.leave(key, kExclusive, at(0));
  }
  void grant_to(int client, int key = 0) {
    audit_.enter(key, client, kExclusive, std::nullopt, {}, at(0));
    audit_.leave(key, kExclusive, at(0));
  }

  Audit audit_{2, kOrigin};
};

/// A client that is inside from one time until another.
struct Stay {
  Mode mode;
  int from, until;
};

TEST(Audit, AnOverlapLastsWhileAConflictingPairIsInside) {
  const struct {
    const char* what;
    std::vector<Stay> stays;
    std::uint64_t overlaps;
    int time;
  } cases[] = {
      {"writers", {{kExclusive, 10, 75}, {kExclusive, 30, 90}}, 1, 45},
      {"all", {{kExclusive, 0, 30}, {kExclusive, 10, 50}, {kShared, 20, 90}}, 2, 40},
      {"readers", {{kShared, 0, 20}, {kShared, 0, 30}}, 0, 0},
      {"readers first", {{kShared, 0, 20}, {kShared, 0, 30}, {kExclusive, 10, 40}}, 1, 20},
      {"a writer first", {{kExclusive, 0, 50}, {kShared, 10, 60}, {kShared, 20, 70}}, 2, 40},
  };
  for (const auto& [what, stays, overlaps, time] : cases) {
    Audit audit(1, kOrigin);
    for (const Stay& stay : stays) audit.enter(0, 0, stay.mode, std::nullopt, {}, at(stay.from));
    for (const Stay& stay : stays) audit.leave(0, stay.mode, at(stay.until));
    EXPECT_EQ(audit.totals(at(100)).overlaps, overlaps) << what;
    EXPECT_EQ(audit.totals(at(100)).overlap_time, nanoseconds(time)) << what;
  }
}

TEST(Audit, OfASemaphoreCountsWhoAreTooMany) {
  Audit audit(1, kOrigin, 2);
  for (const int time : {0, 10, 20}) {
    audit.enter(0, 0, kExclusive, std::nullopt, {}, at(time));
    EXPECT_EQ(audit.totals(at(time)).overlaps, time < 20 ? 0U : 1U);
  }
  audit.leave(0, kExclusive, at(50));
  EXPECT_EQ(audit.totals(at(90)).overlap_time, nanoseconds(30));
}

TEST_F(AuditTest, AnOverlapCountsWhileItLasts) {
  enter(0);
  enter(10);
  EXPECT_EQ(audit_.totals(at(25)).overlap_time, nanoseconds(15));
  EXPECT_EQ(audit_.totals(at(35)).overlap_time, nanoseconds(25));
  leave(40);
  leave(41);
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

TEST_F(AuditTest, OnlyFencingNumbersThatDoNotGrowAreRegressions) {
  for (const std::uint64_t number : {0U, 1U, 2U, 10U, 11U}) pass(number);
  pass(1, 1);
  EXPECT_EQ(audit_.totals().fence_regressions, 0U);
  for (const std::uint64_t number : {11U, 17U, 17U, 17U}) pass(number);
  EXPECT_EQ(audit_.totals().fence_regressions, 3U);
  for (const std::uint64_t number : {19U, 18U, 19U, 20U}) pass(number);
  EXPECT_EQ(audit_.totals().fence_regressions, 5U) << "18 did not lower the mark";
}

TEST_F(AuditTest, AStoreThatLostItsNumbersIsOneResetAndManyRegressions) {
  for (const std::uint64_t number : {100U, 101U, 1U, 2U, 3U}) pass(number);
  EXPECT_EQ(audit_.totals().fence_regressions, 3U);
  EXPECT_EQ(audit_.totals().fence_resets, 1U);
  for (const std::uint64_t number : {1U, 2U, 102U, 103U}) pass(number);
  EXPECT_EQ(audit_.totals().fence_resets, 2U);
  EXPECT_EQ(audit_.totals().fence_regressions, 5U);
}

TEST_F(AuditTest, ThoseWhoShareMayShareTheirNumber) {
  const auto pass_as = [&](Mode mode, std::uint64_t number) {
    const AcquireMark mark = audit_.begin_acquire(0);
    audit_.enter(0, 0, mode, number, mark, at(0));
    audit_.leave(0, mode, at(0));
    return audit_.totals().fence_regressions;
  };
  EXPECT_EQ(pass_as(kExclusive, 4), 0U);
  EXPECT_EQ(pass_as(kShared, 5), 0U);
  EXPECT_EQ(pass_as(kShared, 5), 0U);
  EXPECT_EQ(pass_as(kExclusive, 6), 0U);
  // But not with an exclusive one before or after them, and numbers may not decrease.
  EXPECT_EQ(pass_as(kShared, 6), 1U);
  EXPECT_EQ(pass_as(kShared, 7), 1U);
  EXPECT_EQ(pass_as(kExclusive, 7), 2U);
  EXPECT_EQ(pass_as(kShared, 6), 3U);
}

TEST_F(AuditTest, OnlyAcquisitionsThatHadCompletedCount) {
  // Both were under way at once: the store numbered them in one order, the clients learned of them
  // in the other.
  const AcquireMark first = audit_.begin_acquire(0);
  const AcquireMark second = audit_.begin_acquire(0);
  pass(6, second);
  pass(5, first);
  EXPECT_EQ(audit_.totals().fence_regressions, 0U);
  EXPECT_EQ(audit_.totals().fence_resets, 0U);
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

/// Lets two in at a time. They certainly meet inside, as neither continues alone.
TEST(Audit, ALockThatLetsTwoInIsCaught) {
  constexpr int kRounds = 100;
  Audit audit(1);
  std::barrier meet(2);
  const auto client = [&](int number) {
    for (int i = 0; i < kRounds; ++i) {
      audit.enter(0, number, kExclusive, std::nullopt, {}, tick());
      meet.arrive_and_wait();
      audit.leave(0, kExclusive, tick());
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

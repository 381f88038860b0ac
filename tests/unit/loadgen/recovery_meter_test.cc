#include <gtest/gtest.h>

#include "loadgen/run/fault_player.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

/// A count that grows at rates that are told, read every 10 ms.
class RecoveryMeterTest : public testing::Test {
 protected:
  static constexpr double kBefore = 10'000;

  void go_on(Duration duration, double rate) {
    const TimePoint until = now_ + duration;
    while (now_ < until) {
      now_ += 10ms;
      count_ += rate / 100;
      meter_.read(now_, static_cast<std::uint64_t>(count_));
    }
  }
  Duration since_start(TimePoint when) const { return when - TimePoint{}; }

  RecoveryMeterTest() { meter_.read(now_, 0); }

  TimePoint now_{};
  double count_ = 0;
  RecoveryMeter meter_{kBefore};
};

TEST_F(RecoveryMeterTest, KnowsNothingBeforeAWholeWindow) {
  go_on(meter_.window() - 10ms, 0);
  EXPECT_EQ(meter_.lowest_share(), 1);
  EXPECT_FALSE(meter_.back_at());
  go_on(10ms, 0);
  EXPECT_EQ(meter_.lowest_share(), 0);
}

TEST_F(RecoveryMeterTest, FindsWhenThroughputIsBackAfterHealing) {
  go_on(500ms, 0);
  meter_.healed(now_);
  const TimePoint healed_at = now_;
  go_on(300ms, 100);
  EXPECT_FALSE(meter_.back_at());
  go_on(300ms, kBefore);
  ASSERT_TRUE(meter_.back_at());
  const Duration took = *meter_.back_at() - healed_at;
  EXPECT_GE(took, 290ms);
  EXPECT_LE(took, 310ms);
  EXPECT_EQ(meter_.lowest_share(), 0);
}

TEST_F(RecoveryMeterTest, NinetyPerCentAreEnoughAndLessIsNot) {
  go_on(200ms, 0);
  meter_.healed(now_);
  go_on(500ms, 0.85 * kBefore);
  EXPECT_FALSE(meter_.back_at());
  go_on(500ms, 0.95 * kBefore);
  EXPECT_TRUE(meter_.back_at());
}

TEST_F(RecoveryMeterTest, MeasuresHowDeepItFell) {
  go_on(300ms, 0.5 * kBefore);
  go_on(300ms, 0.25 * kBefore);
  meter_.healed(now_);
  go_on(300ms, kBefore);
  EXPECT_NEAR(meter_.lowest_share(), 0.25, 0.01);
  go_on(300ms, 0);
  EXPECT_NEAR(meter_.lowest_share(), 0.25, 0.01)
      << "what comes after the recovery is another story";
}

TEST_F(RecoveryMeterTest, AFaultThatIsNotHealedMayBeOvercome) {
  go_on(400ms, 0.1 * kBefore);
  go_on(300ms, kBefore);
  ASSERT_TRUE(meter_.back_at());
  EXPECT_GE(since_start(*meter_.back_at()), 390ms);
  EXPECT_LE(since_start(*meter_.back_at()), 410ms);
}

TEST_F(RecoveryMeterTest, ThroughputBeforeHealingIsNoRecoveryFromIt) {
  go_on(300ms, kBefore);
  ASSERT_TRUE(meter_.back_at());
  meter_.healed(now_);
  EXPECT_FALSE(meter_.back_at());
  go_on(300ms, 0);
  EXPECT_FALSE(meter_.back_at());
}

TEST_F(RecoveryMeterTest, NothingHappened) {
  go_on(300ms, kBefore);
  meter_.healed(now_);
  go_on(300ms, kBefore);
  EXPECT_NEAR(meter_.lowest_share(), 1, 0.01);
  EXPECT_EQ(since_start(*meter_.back_at()), 300ms);
}

TEST(RecoveryMeterBefore, TooLittleTellsNoRate) {
  EXPECT_FALSE(RecoveryMeter::after(25ms, 1'000)) << "three sections more or less, or a burst";
  EXPECT_FALSE(RecoveryMeter::after(10s, 3));
  EXPECT_FALSE(RecoveryMeter::after(1s, 0));
  const auto slow = RecoveryMeter::after(1s, 20), fast = RecoveryMeter::after(100ms, 100'000);
  ASSERT_TRUE(slow && fast);
  EXPECT_EQ(slow->window(), RecoveryMeter(20).window());
  EXPECT_EQ(fast->window(), RecoveryMeter(1e6).window());
}

TEST(RecoveryMeterWindow, IsLongEnoughForSomeCounts) {
  EXPECT_EQ(RecoveryMeter(1e6).window(), 100ms);
  EXPECT_EQ(RecoveryMeter(200).window(), 500ms);
  EXPECT_EQ(RecoveryMeter(1).window(), 1s);
}

}  // namespace
}  // namespace lockbench::loadgen

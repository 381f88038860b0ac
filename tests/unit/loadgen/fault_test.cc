#include "loadgen/run/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(const std::string& text) {
  const auto fault = parse_fault(text);
  return fault ? "accepted" : fault.error();
}

TEST(Fault, EveryNameIsKnownAndShownAsItIsRead) {
  for (const std::string_view name : kFaults) {
    for (const char* times : {"@2s", "@1500ms+1s"}) {
      const bool takes_a_time = name == "delay" || name == "client-pause";
      if (name == "client-pause" && std::string_view(times).ends_with("+1s")) continue;
      const std::string text = std::string(name) + (takes_a_time ? ":5ms" : "") + times;
      const auto fault = parse_fault(text);
      ASSERT_TRUE(fault) << fault.error();
      EXPECT_EQ(to_string(fault->kind), name);
      EXPECT_EQ(fault->to_string(), text);
    }
  }
}

TEST(Fault, MayHaveAParameterAndATimeOfHealing) {
  EXPECT_EQ(parse_fault("node-kill:2@1s")->nodes, 2);
  EXPECT_EQ(parse_fault("node-freeze@1s")->nodes, 1);
  EXPECT_EQ(parse_fault("partition:0.25@1s")->share, 0.25);
  EXPECT_EQ(parse_fault("partition@1s")->share, 0.5);
  EXPECT_EQ(parse_fault("partition:1@1s")->share, 1);
  EXPECT_EQ(parse_fault("client-pause:2s@1s")->heals_at(), 3s);
  EXPECT_EQ(parse_fault("delay:5ms@1s")->delay, 5ms);
  EXPECT_EQ(parse_fault("delay:5ms@1s")->what, "delay:5ms");
  EXPECT_EQ(parse_fault("store-freeze@1s")->heals_at(), std::nullopt);
  EXPECT_EQ(parse_fault("failover@1s")->heals_at(), 1s) << "another takes the place";
  EXPECT_EQ(parse_fault("failover@1s+2s")->heals_at(), 3s);
}

TEST(Fault, ErrorsNameTheCulpritAndWhatIsAllowed) {
  EXPECT_THAT(error_of("crash@1s"), StartsWith("\"crash\" is none of store-kill, store-freeze"));
  EXPECT_THAT(error_of(""), StartsWith("\"\" is none of"));
  EXPECT_THAT(error_of("store-kill"), HasSubstr("has no time: use store-kill@2s"));
  EXPECT_THAT(error_of("store-kill@soon"), HasSubstr("\"soon\" is not a duration"));
  EXPECT_THAT(error_of("store-kill@1s+"), HasSubstr("\"\" is not a duration"));
  EXPECT_THAT(error_of("store-kill@-1s"), HasSubstr("\"-1s\" is not a duration"));
  EXPECT_THAT(error_of("store-kill@1s+0s"), HasSubstr("at least 1ms"));
  EXPECT_THAT(error_of("failover:2@1s"), HasSubstr("failover takes no parameter"));
  EXPECT_THAT(error_of("failover:@1s"), HasSubstr("failover takes no parameter"));
  EXPECT_THAT(error_of("node-kill:0@1s"), HasSubstr("nodes from 1 to 15"));
  EXPECT_THAT(error_of("node-kill:@1s"), HasSubstr("nodes from 1 to 15"));
  EXPECT_THAT(error_of("node-kill:2x@1s"), HasSubstr("nodes from 1 to 15"));
  for (const char* share : {"", "0", "1.1", "nan", "-0.5", "half"}) {
    EXPECT_THAT(error_of(std::string("partition:") + share + "@1s"), HasSubstr("up to 1")) << share;
  }
  EXPECT_THAT(error_of("client-pause@1s"), HasSubstr("client-pause:2s"));
  EXPECT_THAT(error_of("client-pause:2s@1s+1s"), HasSubstr("before the @: client-pause:2s@1s"));
  EXPECT_THAT(error_of("client-kill:1@1s"), HasSubstr("client-kill takes no parameter"));
  EXPECT_THAT(error_of("delay@1s"), HasSubstr("delay:5ms"));
  EXPECT_THAT(error_of("delay:0s@1s"), HasSubstr("delay:5ms"));
}

std::vector<Fault> faults(std::initializer_list<const char*> texts) {
  std::vector<Fault> faults;
  for (const char* text : texts) faults.push_back(parse_fault(text).value());
  return faults;
}

TEST(Timetable, IsInTheOrderOfTimeAndFitsIntoTheRun) {
  const auto table = timetable(faults({"store-kill@2s+1s", "failover@1s", "delay:1ms@3s"}), 4s);
  ASSERT_TRUE(table) << table.error();
  EXPECT_EQ(table->at(0).what, "failover");
  EXPECT_EQ(table->at(1).what, "store-kill");
  EXPECT_EQ(table->at(2).what, "delay:1ms");
  EXPECT_TRUE(timetable({}, 1s));
  EXPECT_TRUE(timetable(faults({"store-kill@0s+3s"}), 3s));
  const auto refusal = [](std::initializer_list<const char*> texts) {
    return timetable(faults(texts), 3s).error();
  };
  EXPECT_EQ(refusal({"store-kill@3s"}),
            "store-kill@3s would start after the end of the run, which takes 3s");
  EXPECT_EQ(refusal({"store-kill@2s+2s"}),
            "store-kill@2s+2s would last longer than the run, which takes 3s");
  EXPECT_THAT(refusal({"store-kill@1s+1s", "delay:1ms@1500ms"}),
              HasSubstr("delay:1ms@1500ms would start while store-kill@1s+1s is in force"));
  EXPECT_THAT(refusal({"store-kill@1s", "delay:1ms@2s"}), HasSubstr("must not overlap"));
}

/// A count that grows at given rates, read every 10 ms.
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

TEST_F(RecoveryMeterTest, AFaultMayBeOvercomeBeforeItIsHealedWhichIsNoRecoveryFromIt) {
  go_on(400ms, 0.1 * kBefore);
  go_on(300ms, kBefore);
  ASSERT_TRUE(meter_.back_at());
  EXPECT_GE(*meter_.back_at() - TimePoint{}, 390ms);
  EXPECT_LE(*meter_.back_at() - TimePoint{}, 410ms);
  meter_.healed(now_);
  EXPECT_FALSE(meter_.back_at());
  go_on(300ms, 0);
  EXPECT_FALSE(meter_.back_at());
}

TEST(RecoveryMeterBefore, ADipOfAFewCountsIsChance) {
  RecoveryMeter meter(30);
  TimePoint now{};
  std::uint64_t count = 0;
  meter.read(now, count);
  for (const std::uint64_t each : {15, 40, 30}) {
    now += 1s;
    count += each;
    meter.read(now, count);
  }
  EXPECT_EQ(meter.lowest_share(), 1) << "15 of 30 may come by chance";
  now += 1s;
  meter.read(now, count + 5);
  EXPECT_NEAR(meter.lowest_share(), 5 / 30.0, 1e-9);
}

TEST(RecoveryMeterBefore, TooLittleTellsNoRate) {
  EXPECT_FALSE(RecoveryMeter::after(25ms, 1'000)) << "three sections more or less, or a burst";
  EXPECT_FALSE(RecoveryMeter::after(10s, 3));
  EXPECT_FALSE(RecoveryMeter::after(1s, 0));
  // Windows are long enough for several counts.
  EXPECT_EQ(RecoveryMeter::after(100ms, 100'000).value().window(), 100ms);
  EXPECT_EQ(RecoveryMeter::after(1s, 200).value().window(), 500ms);
  EXPECT_EQ(RecoveryMeter::after(100s, 100).value().window(), 1s);
}

}  // namespace
}  // namespace lockbench::loadgen

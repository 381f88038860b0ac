#include "hazards/dose.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/hazards/support/fixtures.h"

namespace lockbench::hazards::test {
namespace {

using namespace std::chrono_literals;

bool was_disturbed(const DosePoint& point) {
  return point.plays == 0 && point.late > 0 && !point.failed;
}

/// Its two points, from the longer to the shorter; of three tries at most, the first in which each
/// had a section as long as asked for.
std::vector<DosePoint> measured(std::string_view scenario_name, std::string_view strategy_name) {
  std::vector<DosePoint> points;
  for (int tries = 0; tries < 3; ++tries) {
    points = dose_points({&scenario(scenario_name)}, {&strategy(strategy_name)}, {0.5, 2});
    measure_doses(server_pool(), points, {.plays = 3, .at_once = 2}, [](const DosePoint&) {}, {});
    if (std::ranges::none_of(points, was_disturbed)) break;
  }
  for (const DosePoint& point : points) EXPECT_GT(point.plays, 0) << point.reason;
  return points;
}

TEST(Dose, ThatIsTooSmallHarmsNobodyAndOneThatIsLargeHarmsWhatRunsOut) {
  for (const std::string_view name : {"pause-holding", "overrun-holding"}) {
    const auto points = measured(name, "redis-set-nx-lua");
    ASSERT_EQ(points.size(), 2U);
    EXPECT_EQ(points[0].ratio, 2);
    EXPECT_EQ(points[0].violated, points[0].plays) << name << points[0].reason;
    EXPECT_FALSE(points[0].surprises());
    EXPECT_EQ(points[1].violated, 0) << name;
  }
}

TEST(Dose, OfWorkHarmsNobodyWhoseLockIsRenewed) {
  const auto points = measured("overrun-holding", "redis-watchdog");
  EXPECT_EQ(points[0].violated, 0);
}

TEST(Dose, HarmsWhoeverForgetsToRenewAndIsASurprise) {
  const auto points = measured("overrun-holding", "test-forgets-to-renew");
  EXPECT_EQ(points[0].violated, points[0].plays);
  EXPECT_TRUE(points[0].surprises()) << "it declares that it withstands this";
}

TEST(Dose, HarmsBeforeItsTimeWhoeverLetsEverybodyIn) {
  const auto points = measured("pause-holding", "test-blind");
  // Who comes late in the section may not be done before its end.
  EXPECT_GT(points[1].violated, 0);
  EXPECT_TRUE(points[1].surprises()) << "the lock had not run out yet";
}

TEST(Dose, ThatCannotBeGivenSaysWhy) {
  std::vector<DosePoint> points =
      dose_points({&scenario("pause-holding")}, {&strategy("redis-set-nx-lua")}, {1});
  // No such lock: its clients cannot be started.
  Descriptor unknown = strategy("redis-set-nx-lua");
  unknown.name = "no-such-lock";
  points[0].strategy = &unknown;
  measure_doses(server_pool(), points, {.plays = 1}, [](const DosePoint&) {}, {});
  EXPECT_TRUE(points[0].failed);
  EXPECT_EQ(points[0].plays, 0);
  EXPECT_NE(points[0].reason.find("no such strategy"), std::string::npos) << points[0].reason;
}

TEST(Dose, IsNotBegunAfterAStop) {
  auto points =
      dose_points({&scenario("pause-holding")}, {&strategy("redis-set-nx-lua")}, {0.5, 1});
  std::stop_source stop;
  stop.request_stop();
  int done = 0;
  measure_doses(
      server_pool(), points, {.plays = 1}, [&](const DosePoint&) { ++done; }, stop.get_token());
  EXPECT_EQ(done, 0);
  EXPECT_EQ(points[0].plays, 0);
}

TEST(DosePoints, AreThoseOfScenariosWithALengthAndStrategiesThatTheyConcern) {
  const std::vector<const Scenario*> scenarios{&scenario("pause-holding"),
                                               &scenario("late-release")};
  const std::vector<const Descriptor*> strategies{&strategy("none"), &strategy("redis-set-nx")};
  const auto points = dose_points(scenarios, strategies, {1, 2, 1, 0.5});
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].ratio, 2) << "the longest first";
  EXPECT_EQ(points[2].ratio, 0.5);
  for (const DosePoint& point : points) {
    EXPECT_EQ(point.scenario->name, "pause-holding");
    EXPECT_EQ(point.strategy->name, "redis-set-nx");
  }
}

TEST(DosePlays, AreFewerWhereTheyTakeLong) {
  EXPECT_EQ(plays_that_fit(10, 300ms), 10);
  EXPECT_EQ(plays_that_fit(10, 4s), 5);
  EXPECT_EQ(plays_that_fit(10, 30s), 2);
  EXPECT_EQ(plays_that_fit(1, 30s), 1);
  EXPECT_EQ(plays_that_fit(10, 0s), 10) << "nobody knows yet how long one takes";
}

TEST(DoseShare, IsOfThePlaysThatCameOutAsAsked) {
  const DosePoint point{.plays = 8, .violated = 2, .late = 5};
  EXPECT_EQ(point.violated_share(), 0.25);
}

TEST(DoseSurprise, IsAViolationThatNobodyDeclared) {
  DosePoint point{.scenario = &scenario("pause-holding"),
                  .strategy = &strategy("redis-set-nx-lua"),
                  .ratio = 1.05,
                  .plays = 2,
                  .violated = 1};
  EXPECT_FALSE(point.surprises());
  point.ratio = 0.9;
  EXPECT_TRUE(point.surprises());
  EXPECT_EQ(point.surprise(), "1 of 2 violated; none expected");
  point.violated = 0;
  EXPECT_FALSE(point.surprises());
  point.ratio = 3;
  EXPECT_TRUE(point.surprises()) << "it declares that this harms it";
  EXPECT_EQ(point.surprise(), "none of 2 violated, though lost-update is declared");
  point.plays = 0;
  EXPECT_FALSE(point.surprises()) << "nothing was seen";
  point = {.scenario = &scenario("overrun-holding"),
           .strategy = &strategy("redis-watchdog"),
           .ratio = 3,
           .plays = 2,
           .violated = 1};
  EXPECT_TRUE(point.surprises());
}

}  // namespace
}  // namespace lockbench::hazards::test

#include <gmock/gmock.h>

#include "strategies/carrier.h"
#include "tests/hazards/support/fixtures.h"

// A play whose own steps come late is not played; how repeated plays of one cell are combined.

namespace lockbench::hazards::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using enum HazardOutcome;

constexpr TimePoint kDue{10s};

TEST(Pace, AStepMayBeEarlyOrALittleLate) {
  for (const TimePoint at : {kDue - 1h, kDue, kDue + 125ms}) {
    EXPECT_NO_THROW(require_in_time("the pause ended", kDue, at, 125ms));
  }
}

TEST(Pace, AStepThatIsLateIsNamed) {
  try {
    require_in_time("the pause ended", kDue, kDue + 600ms, 125ms);
    FAIL() << "late by 600 ms";
  } catch (const Disturbed& late) {
    EXPECT_STREQ(late.what(), "disturbed: the pause ended 600 ms late, where 125 ms are tolerated");
  }
}

TEST(DisturbedPlay, OfAClientThatAsksLateIsNotPlayed) {
  const Scenario slow{.name = "slow", .question = "?", .play = [](Play& play) -> Verdict {
                        Actor& client = play.client("client");
                        client.stop();
                        client.start_acquire(5s);
                        play.wait_until(Carrier::current().now() + 2 * play.tolerance());
                        client.resume();
                        client.finish_acquire();
                        return {double_grant, "what was seen without noticing"};
                      }};
  const Cell cell = play(server_pool(), slow, strategy("redis-set-nx-lua"));
  EXPECT_TRUE(cell.disturbed) << description_of(cell);
  EXPECT_FALSE(cell.failed);
  EXPECT_EQ(cell.observed, not_played);
  EXPECT_TRUE(cell.agrees()) << "it accuses nobody";
  EXPECT_THAT(cell.reason, HasSubstr("disturbed: "));
}

Cell seen(std::optional<HazardOutcome> outcome) {
  Cell cell = make_cell(scenario("late-release"), strategy("redis-set-nx-lua"));
  cell.observed = outcome;
  return cell;
}

TEST(DisturbedPlay, IsNotTheOneShownAndDoesNotMakeACellUnstable) {
  Cell disturbed = seen(not_played);
  disturbed.expected = not_played;
  disturbed.disturbed = true;
  const Repeated cell = gather({disturbed, seen(safe), disturbed}, 1).front();
  EXPECT_EQ(cell.shown.observed, safe);
  EXPECT_FALSE(cell.unstable());
  EXPECT_EQ(cell.outcomes.at(not_played), 2);
  const auto cells = gather({disturbed, seen(safe), seen(foreign_release)}, 1);
  EXPECT_TRUE(cells.front().unstable());
}

TEST(RepeatedCells, ArePlayedRoundAfterRound) {
  const std::vector<Cell> cells{seen(safe), seen(stuck)};
  const auto plays = repeated(cells, 3);
  ASSERT_EQ(plays.size(), 6U);
  EXPECT_EQ(plays[0].observed, safe);
  EXPECT_EQ(plays[5].observed, stuck);
}

TEST(RepeatedCells, ThatDoNotEndAlikeShowThePlayThatWasNotDeclared) {
  const auto stable =
      gather({seen(safe), seen(foreign_release), seen(safe), seen(foreign_release)}, 2);
  ASSERT_EQ(stable.size(), 2U);
  EXPECT_FALSE(stable[0].unstable() || stable[1].unstable());
  EXPECT_EQ(stable[0].tally(), "safe 2 times");
  const auto cells = gather({seen(safe), seen(safe), seen(foreign_release), seen(stuck)}, 1);
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_TRUE(cells[0].unstable());
  EXPECT_EQ(cells[0].shown.observed, foreign_release);
  EXPECT_EQ(cells[0].tally(), "safe 2 times, foreign-release once, stuck once");
}

TEST(RepeatedCells, ThatBrokeOffNowAndThenAreStillSeen) {
  Cell broken = seen(std::nullopt);
  broken.failed = true;
  broken.reason = "it fell over";
  const auto cells = gather({broken, seen(safe)}, 1);
  EXPECT_TRUE(cells[0].shown.played());
  EXPECT_THAT(cells[0].failures, ElementsAre("it fell over"));
  EXPECT_FALSE(gather({broken, broken}, 1)[0].shown.played());
}

}  // namespace
}  // namespace lockbench::hazards::test

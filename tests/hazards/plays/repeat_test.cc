#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hazards/player.h"
#include "tests/hazards/support/fixtures.h"

// How repeated plays of one cell are combined. Nothing is played here.

namespace lockbench::hazards::test {
namespace {

using testing::ElementsAre;
using enum HazardOutcome;

Cell seen(std::optional<HazardOutcome> outcome) {
  Cell cell = make_cell(scenario("late-release"), strategy("redis-set-nx-lua"));
  cell.observed = outcome;
  return cell;
}

TEST(RepeatedCells, ArePlayedRoundAfterRound) {
  const std::vector<Cell> cells{seen(safe), seen(stuck)};
  const auto plays = repeated(cells, 3);
  ASSERT_EQ(plays.size(), 6U);
  EXPECT_EQ(plays[0].observed, safe);
  EXPECT_EQ(plays[5].observed, stuck);
}

TEST(RepeatedCells, ThatEndAlikeAreStable) {
  const auto cells =
      gather({seen(safe), seen(foreign_release), seen(safe), seen(foreign_release)}, 2);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_FALSE(cells[0].unstable());
  EXPECT_FALSE(cells[1].unstable());
  EXPECT_EQ(cells[0].tally(), "safe 2 times");
}

TEST(RepeatedCells, ThatDoNotShowThePlayThatWasNotDeclared) {
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

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hazards/player.h"
#include "hazards/play.h"
#include "strategies/carrier.h"
#include "tests/hazards/support/fixtures.h"

// A play whose own steps come late is not played.

namespace lockbench::hazards::test {
namespace {

using namespace std::chrono_literals;
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

TEST(DisturbedPlay, IsNotTheOneShownAndDoesNotMakeACellUnstable) {
  Cell seen = make_cell(scenario("late-release"), strategy("redis-set-nx-lua"));
  Cell disturbed = seen;
  seen.observed = safe;
  disturbed.observed = disturbed.expected = not_played;
  disturbed.disturbed = true;
  const Repeated cell = gather({disturbed, seen, disturbed}, 1).front();
  EXPECT_EQ(cell.shown.observed, safe);
  EXPECT_FALSE(cell.unstable());
  EXPECT_EQ(cell.outcomes.at(not_played), 2);
  Cell other = seen;
  other.observed = foreign_release;
  EXPECT_TRUE(gather({disturbed, seen, other}, 1).front().unstable());
}

}  // namespace
}  // namespace lockbench::hazards::test

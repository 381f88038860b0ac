#include <gmock/gmock.h>

#include <algorithm>

#include "hazards/verdicts.h"
#include "tests/hazards/support/fixtures.h"

// Times that plays measure, and how long faults last.

namespace lockbench::hazards::test {
namespace {

using namespace std::chrono_literals;

TimePoint time_of(const Cell& cell, std::string_view who, std::string_view what) {
  const auto found =
      std::find_if(cell.timeline.begin(), cell.timeline.end(), [&](const Timeline::Entry& entry) {
        return entry.who == who && entry.what.starts_with(what);
      });
  if (found == cell.timeline.end()) throw std::runtime_error(description_of(cell));
  return found->at;
}

double belief_gap(const std::map<std::string, Fact>& evidence) {
  return std::get<double>(evidence.at("belief_gap_seconds"));
}

TEST(Faults, OfTwoTtlsLastThatLong) {
  constexpr Duration kTtl = 500ms;
  const Cell pause = undisturbed("pause-holding", "test-sound");
  EXPECT_GE(time_of(pause, "fault", "holder is resumed") - time_of(pause, "holder", "is granted"),
            2 * kTtl)
      << description_of(pause);
  const Cell cut = undisturbed("partition-holder", "test-sound");
  EXPECT_GE(time_of(cut, "fault", "the holder's connection is restored") -
                time_of(cut, "holder", "is granted"),
            2 * kTtl)
      << description_of(cut);
}

TEST(BeliefGap, ShowsALeaseThatIsTooLong) {
  const Cell sound = undisturbed("partition-holder", "test-sound");
  EXPECT_LE(belief_gap(sound.evidence), 0.0) << description_of(sound);
  const Cell cell = undisturbed("partition-holder", "test-overstays");
  ASSERT_TRUE(cell.played()) << description_of(cell);
  EXPECT_GT(belief_gap(cell.evidence), 0.0) << description_of(cell);
}

TEST(Return, IsStuckWhereItTakesLongerThanItsBound) {
  Stage play("test-sound");
  const TimePoint since{};
  Grant grant;
  grant.outcome = AcquireOutcome::acquired;
  grant.answered_at = since + 2s;
  EXPECT_EQ(verdict_of_return(play, grant, since, 2s).outcome, HazardOutcome::recovers);
  const Verdict late = verdict_of_return(play, grant, since, 1s);
  EXPECT_EQ(late.outcome, HazardOutcome::stuck);
  EXPECT_THAT(late.reason, testing::HasSubstr("after 2000 ms, later than the bound of 1000 ms"));
}

}  // namespace
}  // namespace lockbench::hazards::test

#include "hazards/scenario.h"

#include <gmock/gmock.h>

#include <tuple>

#include "strategies/carrier.h"
#include "strategies/registry.h"
#include "tests/hazards/support/fixtures.h"

// Expected outcomes of scenarios, plays that do not count, and the combination of repeated plays of
// one cell.

namespace lockbench::hazards::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using enum HazardOutcome;

TEST(Scenarios, AreFoundByNameAndHaveOneEach) {
  for (const Scenario* scenario : all_scenarios())
    EXPECT_EQ(find_scenario(scenario->name), scenario);
  EXPECT_EQ(find_scenario("no-such-thing"), nullptr);
  EXPECT_THROW(ScenarioRegistration({{.name = "late-release"}}), std::logic_error);
}

TEST(Scenarios, AskAQuestionAndExpectASafeAnswer) {
  for (const Scenario* scenario : all_scenarios()) {
    EXPECT_EQ(scenario->question.back(), '?') << scenario->name;
    EXPECT_TRUE(scenario->default_outcome == safe || scenario->default_outcome == recovers)
        << scenario->name;
    EXPECT_TRUE(scenario->play) << scenario->name;
    EXPECT_TRUE(scenario->like.empty() || find_scenario(scenario->like)) << scenario->name;
  }
}

/// A declared hazard that never applies would not be checked.
TEST(Scenarios, ConcernTheStrategiesThatDeclareThem) {
  for (const Descriptor* strategy : all_strategies()) {
    for (const KnownHazard& known : strategy->hazards) {
      const Scenario* const scenario = find_scenario(known.scenario);
      ASSERT_NE(scenario, nullptr) << strategy->name << " declares " << known.scenario;
      EXPECT_EQ(hazards::not_applicable(*scenario, *strategy), std::nullopt)
          << strategy->name << " declares " << known.scenario;
    }
  }
}

TEST(Scenarios, ExpectWhatIsDeclaredElseTheSafeAnswerIfTheyConcernTheLock) {
  const std::tuple<std::string_view, std::string_view, HazardOutcome> expected[] = {
      {"late-release", "redis-set-nx", foreign_release},
      {"late-release", "redis-set-nx-lua", safe},
      {"crash-holding", "redis-set-nx", recovers},
      // A variant expects what is declared for the basic scenario.
      {"pause-holding-late", "redis-set-nx-lua", lost_update},
      {"partition-holder-late", "redis-set-nx-lua", known_loss},
      // A lock that never runs out.
      {"overrun-holding", "redis-setnx", not_applicable},
      {"pause-holding-late", "redis-setnx", not_applicable},
      {"late-release", "redis-setnx", not_applicable},
      {"overrun-holding", "postgres-advisory", not_applicable},
      {"pause-holding-late", "postgres-advisory", not_applicable},
      {"late-release", "postgres-advisory", not_applicable},
      // Its contenders prolong it; if they come late, it runs out.
      {"overrun-holding", "redis-setnx-expire-multi", not_applicable},
      {"overrun-holding-late", "redis-setnx-expire-multi", known_loss},
      {"late-release", "redis-setnx-expire-multi", foreign_release}};
  for (const auto& [name, lock, outcome] : expected) {
    EXPECT_EQ(expected_outcome(scenario(name), strategy(lock)), outcome) << name << " " << lock;
  }
}

TEST(Plays, OfAFaultThatNobodyCanCauseAreNotPlayed) {
  const Cell cell = play(server_pool(), scenario("store-clock-jump"), strategy("etcd"));
  EXPECT_EQ(cell.observed, not_played);
  EXPECT_TRUE(cell.agrees());
  EXPECT_FALSE(cell.failed);
  EXPECT_NE(cell.reason.find("clock"), std::string::npos) << cell.reason;
}

TEST(Scenarios, ThatDoNotConcernAStrategySayWhy) {
  const Cell control = make_cell(scenario("late-release"), strategy("none"));
  EXPECT_EQ(control.observed, not_applicable);
  EXPECT_TRUE(control.agrees());
  EXPECT_NE(control.reason, "");
  const Cell other = make_cell(scenario("memcached-eviction"), strategy("redis-set-nx"));
  EXPECT_EQ(other.observed, not_applicable);
}

TEST(Plays, ThatBreakOffAreNoVerdict) {
  const Scenario broken{.name = "broken", .question = "?", .play = [](Play& play) -> Verdict {
                          play.client("one").must_acquire();
                          play.client("two").must_acquire();
                          return {};
                        }};
  const Cell cell = undisturbed(broken, strategy("redis-setnx"));
  EXPECT_FALSE(cell.played());
  EXPECT_FALSE(cell.agrees());
  EXPECT_TRUE(cell.failed);
  EXPECT_NE(cell.reason.find("two did not get the lock"), std::string::npos) << cell.reason;
}

const deployment::PrivateStoreRegistration collapsing(
    {.name = "test-collapsing",
     .start = [](testbed::Testbed&,
                 const deployment::StoreRequest&) -> std::unique_ptr<deployment::PrivateStore> {
       throw std::runtime_error("the servers collapse");
     }});

TEST(Plays, WhoseStageCollapsesWhileItOpensAreNoVerdictEither) {
  Descriptor lost = strategy("redis-setnx");
  lost.backend = "test-collapsing";
  std::vector<Cell> cells(2, make_cell(scenario("contention"), lost));
  play_all(server_pool(), cells, 2, [](const Cell&) {}, {});
  for (const Cell& cell : cells) {
    EXPECT_FALSE(cell.played());
    EXPECT_TRUE(cell.failed);
    EXPECT_EQ(cell.reason, "the servers collapse");
  }
}

TEST(Plays, AreStoppedBetweenTwo) {
  std::vector<Cell> cells(3, make_cell(scenario("contention"), strategy("redis-setnx")));
  const std::stop_source stop;
  std::stop_source ending = stop;
  play_all(
      server_pool(), cells, 1, [&](const Cell&) { ending.request_stop(); }, stop.get_token());
  EXPECT_TRUE(cells[0].played());
  EXPECT_FALSE(cells[1].played());
  EXPECT_FALSE(cells[2].played());
}

TEST(Timeline, IsInOrderHoweverItWasHeardOf) {
  Stage play("redis-setnx");
  const TimePoint now{};
  play.tell(now + 2s, "b", "second");
  play.tell(now + 1s, "a", "first");
  play.tell(now + 2s, "c", "third");
  ASSERT_EQ(play.timeline().size(), 3U);
  EXPECT_EQ(play.timeline()[0].what, "first");
  EXPECT_EQ(play.timeline()[2].what, "third");
}

constexpr TimePoint kDue{10s};

TEST(Pace, AStepMayBeEarlyOrALittleLateElseItIsNamed) {
  for (const TimePoint at : {kDue - 1h, kDue, kDue + 125ms}) {
    EXPECT_NO_THROW(require_in_time("the pause ended", kDue, at, 125ms));
  }
  try {
    require_in_time("the pause ended", kDue, kDue + 600ms, 125ms);
    FAIL() << "late by 600 ms";
  } catch (const Disturbed& late) {
    EXPECT_STREQ(late.what(),
                 "disturbed: the pause ended 600 ms late, but at most 125 ms are tolerated");
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

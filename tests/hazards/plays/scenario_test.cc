#include "hazards/scenario.h"

#include <gtest/gtest.h>

#include <tuple>

#include "strategies/registry.h"
#include "tests/hazards/support/fixtures.h"

namespace lockbench::hazards::test {
namespace {

TEST(Scenarios, AreFoundByNameAndHaveOneEach) {
  for (const Scenario* scenario : all_scenarios())
    EXPECT_EQ(find_scenario(scenario->name), scenario);
  EXPECT_EQ(find_scenario("no-such-thing"), nullptr);
  EXPECT_THROW(ScenarioRegistration({{.name = "late-release"}}), std::logic_error);
}

TEST(Scenarios, AskAQuestionAndExpectASafeAnswer) {
  for (const Scenario* scenario : all_scenarios()) {
    EXPECT_EQ(scenario->question.back(), '?') << scenario->name;
    EXPECT_TRUE(scenario->default_outcome == HazardOutcome::safe ||
                scenario->default_outcome == HazardOutcome::recovers)
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
  using enum HazardOutcome;
  const std::tuple<std::string_view, std::string_view, HazardOutcome> expected[] = {
      {"late-release", "redis-set-nx", foreign_release},
      {"late-release", "redis-set-nx-lua", safe},
      {"crash-holding", "redis-set-nx", recovers},
      // Of a variant, as is declared of the first.
      {"pause-holding-late", "redis-set-nx-lua", lost_update},
      {"partition-holder-late", "redis-set-nx-lua", known_loss},
      // A lock that never runs out.
      {"overrun-holding", "redis-setnx", not_applicable},
      {"pause-holding-late", "redis-setnx", not_applicable},
      {"late-release", "redis-setnx", not_applicable},
      {"overrun-holding", "postgres-advisory", not_applicable},
      {"pause-holding-late", "postgres-advisory", not_applicable},
      {"late-release", "postgres-advisory", not_applicable},
      // Its contenders prolong it: it runs out if they come late.
      {"overrun-holding", "redis-setnx-expire-multi", not_applicable},
      {"overrun-holding-late", "redis-setnx-expire-multi", known_loss},
      {"late-release", "redis-setnx-expire-multi", foreign_release}};
  for (const auto& [name, lock, outcome] : expected) {
    EXPECT_EQ(expected_outcome(scenario(name), strategy(lock)), outcome) << name << " " << lock;
  }
}

TEST(Plays, OfAFaultThatNobodyCanCauseAreNotPlayed) {
  const Cell cell = play(server_pool(), scenario("store-clock-jump"), strategy("etcd"));
  EXPECT_EQ(cell.observed, HazardOutcome::not_played);
  EXPECT_TRUE(cell.agrees());
  EXPECT_FALSE(cell.failed);
  EXPECT_NE(cell.reason.find("clock"), std::string::npos) << cell.reason;
}

TEST(Scenarios, ThatDoNotConcernAStrategySayWhy) {
  const Cell control = make_cell(scenario("late-release"), strategy("none"));
  EXPECT_EQ(control.observed, HazardOutcome::not_applicable);
  EXPECT_TRUE(control.agrees());
  EXPECT_NE(control.reason, "");
  const Cell other = make_cell(scenario("memcached-eviction"), strategy("redis-set-nx"));
  EXPECT_EQ(other.observed, HazardOutcome::not_applicable);
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
     .start = [](deployment::LocalHost&,
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
  Timeline timeline;
  const TimePoint now{};
  using std::chrono::seconds;
  timeline.add(now + seconds(2), "b", "second");
  timeline.add(now + seconds(1), "a", "first");
  timeline.add(now + seconds(2), "c", "third");
  ASSERT_EQ(timeline.entries().size(), 3U);
  EXPECT_EQ(timeline.entries()[0].what, "first");
  EXPECT_EQ(timeline.entries()[2].what, "third");
}

}  // namespace
}  // namespace lockbench::hazards::test

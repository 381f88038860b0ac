#include "results/tables/hazard_sheet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/tables/hazard_words.h"
#include "results/tables/text.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::HasSubstr;
using testing::Not;

Hazard cell(std::string scenario, std::string strategy, const std::string& observed) {
  return {.scenario = std::move(scenario),
          .strategy = std::move(strategy),
          .expected = observed,
          .observed = observed,
          .evidence = {{"reason", "because of " + observed}}};
}

std::vector<Hazard> some_cells() {
  return {cell("late-release", "one", "safe"), cell("late-release", "two", "foreign-release"),
          cell("crash-holding", "one", "recovers"), cell("crash-holding", "two", "not-applicable")};
}

TEST(HazardMatrix, HasARowForAScenarioAndANumberForAStrategy) {
  const std::string text = to_matrix(some_cells(), {});
  EXPECT_THAT(text, HasSubstr("   1 one\n   2 two\n"));
  EXPECT_THAT(text, HasSubstr("late-release   safe     freed"));
  EXPECT_THAT(text, HasSubstr("crash-holding  back     ·"));
}

TEST(HazardMatrix, ExplainsTheWordsThatOccurAndNoOthers) {
  const std::string text = to_matrix(some_cells(), {});
  EXPECT_THAT(text, HasSubstr("freed    foreign-release: "));
  EXPECT_THAT(text, Not(HasSubstr("lost-update")));
  EXPECT_THAT(text, Not(HasSubstr("not what the strategy declares")));
}

TEST(HazardMatrix, MarksWhatWasNotDeclared) {
  auto cells = some_cells();
  cells[0].expected = "double-grant";
  cells[0].agrees = false;
  const std::string text = to_matrix(cells, {});
  EXPECT_THAT(text, HasSubstr("late-release   safe!"));
  EXPECT_THAT(text, HasSubstr("not what the strategy declares"));
  EXPECT_THAT(reasons(cells, {}), HasSubstr("late-release / one: safe (declared: double-grant)\n"));
}

TEST(HazardMatrix, MarksWhatIsNotAlwaysSo) {
  auto cells = some_cells();
  cells[0].observed = "double-grant";
  cells[0].agrees = false;
  cells[0].evidence["unstable"] = true;
  cells[0].evidence["outcomes"] = std::string("safe 19 times, double-grant once");
  EXPECT_THAT(to_matrix(cells, {}), HasSubstr("late-release   double~"));
  EXPECT_THAT(to_matrix(cells, {}), HasSubstr("~        not the same in every play"));
  EXPECT_THAT(reasons(cells, {}),
              HasSubstr("double-grant (declared: safe), unstable: safe 19 times"));
}

TEST(HazardMatrix, IsFoldedToTheWidth) {
  const std::string text = to_matrix(some_cells(), {.width = 25});
  EXPECT_THAT(text, HasSubstr("late-release   safe   \n"));
  EXPECT_THAT(text, HasSubstr("late-release   freed  \n"));
}

TEST(HazardMatrix, IsColoredOnlyWhereAsked) {
  EXPECT_THAT(to_matrix(some_cells(), {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(to_matrix(some_cells(), {.color = true}), HasSubstr("\x1b[31mfreed"));
}

TEST(HazardMatrix, LeavesRoomForACellThatWasNotPlayed) {
  auto cells = some_cells();
  cells.erase(cells.begin());
  EXPECT_THAT(to_matrix(cells, {}), HasSubstr("late-release   freed           \n"));
}

TEST(HazardReasons, AreGivenForUnsafeCellsOnly) {
  EXPECT_EQ(reasons(some_cells(), {}),
            "late-release / two: foreign-release\n  because of foreign-release\n");
}

TEST(HazardReasons, AreSharedByCellsThatEndedAlike) {
  auto cells = some_cells();
  cells[0] = cell("late-release", "one", "foreign-release");
  EXPECT_EQ(reasons(cells, {}),
            "late-release / one, two: foreign-release\n  because of foreign-release\n");
  cells[0].evidence["reason"] = std::string("another one");
  EXPECT_EQ(reasons(cells, {}),
            "late-release / one: foreign-release\n  another one\n"
            "late-release / two: foreign-release\n  because of foreign-release\n");
}

TEST(HazardReasons, AreFoldedToTheWidth) {
  EXPECT_EQ(reasons(some_cells(), {.width = 20}),
            "late-release / two:\n  foreign-release\n  because of\n  foreign-release\n");
}

TEST(Harm, IsNotRecoveryNorARefusal) {
  for (const char* outcome : {"safe", "recovers", "not-applicable", "refused"}) {
    EXPECT_FALSE(does_harm(outcome)) << outcome;
  }
  for (const char* outcome : {"stuck", "self-deadlock", "unavailable", "double-grant", "unheard"}) {
    EXPECT_TRUE(does_harm(outcome)) << outcome;
  }
}

TEST(Harm, OfBrokenExclusionIsGraverThanThatOfWaiting) {
  EXPECT_EQ(gravity("double-grant"), gravity("stuck"));
  EXPECT_GT(gravity("double-grant"), gravity("unavailable"));
  EXPECT_GT(gravity("unavailable"), gravity("refused"));
  EXPECT_GT(gravity("refused"), gravity("recovers"));
}

TEST(HazardReasons, ShowARefusalAsWhatItIs) {
  EXPECT_EQ(reasons({{.scenario = "failover", .strategy = "x", .observed = "refused"}}, {}),
            "failover / x: refused\n  \n");
}

TEST(HazardExplained, TellsTheWholePlay) {
  const std::string text = explain(sample_hazards().front());
  EXPECT_THAT(text, HasSubstr("late-release / redis-set-nx: safe (foreign-release declared)\n"));
  EXPECT_THAT(text, HasSubstr("0.001 s  holder  asks for the lock\n"));
  EXPECT_THAT(text, HasSubstr("belief_gap_seconds: -0.250\n"));
}

TEST(HazardCsv, HasALineForACell) {
  EXPECT_EQ(to_csv(sample_hazards()),
            "scenario,strategy,expected,observed,agrees,reason\n"
            "late-release,redis-set-nx,foreign-release,safe,false,"
            "\"the \"\"second\"\" still held its lock afterwards\"\n");
}

}  // namespace
}  // namespace lockbench::results

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/tables/hazards.h"
#include "results/tables/outcomes.h"
#include "results/tables/text.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

Hazard a_cell(std::string scenario, std::string strategy, const std::string& observed) {
  return {.scenario = std::move(scenario),
          .strategy = std::move(strategy),
          .expected = observed,
          .observed = observed,
          .evidence = {{"reason", "because of " + observed}}};
}

std::vector<Hazard> four_cells() {
  return {a_cell("late-release", "one", "safe"), a_cell("late-release", "two", "foreign-release"),
          a_cell("crash-holding", "one", "recovers"),
          a_cell("crash-holding", "two", "not-applicable")};
}

TEST(HazardText, HasARowForAScenarioAndANumberForAStrategy) {
  const std::string text = hazard_text(four_cells(), {});
  EXPECT_THAT(text, HasSubstr("   1 one\n   2 two\n"));
  EXPECT_THAT(text, HasSubstr("late-release   safe      freed"));
  EXPECT_THAT(text, HasSubstr("crash-holding  back      ·"));
}

TEST(HazardText, ExplainsTheOutcomesThatOccurAndNoOthers) {
  const std::string text = hazard_text(four_cells(), {});
  EXPECT_THAT(text, HasSubstr("freed     foreign-release: "));
  EXPECT_THAT(text, Not(HasSubstr("lost-update")));
  EXPECT_THAT(text, Not(HasSubstr("differs from what the strategy declares")));
}

TEST(HazardText, MarksAnOutcomeThatIsNotTheDeclaredOne) {
  auto cells = four_cells();
  cells[0].expected = "double-grant";
  cells[0].agrees = false;
  const std::string text = hazard_text(cells, {});
  EXPECT_THAT(text, HasSubstr("late-release   safe!"));
  EXPECT_THAT(text, HasSubstr("differs from what the strategy declares"));
  EXPECT_THAT(text, HasSubstr("late-release / one: safe (declared: double-grant)\n"));
}

TEST(HazardText, MarksAnUnstableOutcome) {
  auto cells = four_cells();
  cells[0].observed = "double-grant";
  cells[0].agrees = false;
  cells[0].evidence["unstable"] = true;
  cells[0].evidence["outcomes"] = std::string("safe 19 times, double-grant once");
  const std::string text = hazard_text(cells, {});
  EXPECT_THAT(text, HasSubstr("late-release   double~"));
  EXPECT_THAT(text, HasSubstr("~         plays ended differently"));
  EXPECT_THAT(text, HasSubstr("double-grant (declared: safe), unstable: safe 19 times"));
}

TEST(HazardText, FitsTheWidth) {
  const std::string text = hazard_text(four_cells(), {.width = 25});
  EXPECT_THAT(text, HasSubstr("late-release   safe\n"));
  EXPECT_THAT(text, HasSubstr("late-release   freed\n"));
  EXPECT_THAT(text, EndsWith("\nlate-release / two:\n  foreign-release\n"
                             "  because of\n  foreign-release\n"));
}

TEST(HazardText, IsColoredAndAsciiOnlyWhereAsked) {
  EXPECT_THAT(hazard_text(four_cells(), {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(hazard_text(four_cells(), {.color = true}), HasSubstr("\x1b[31mfreed"));
  EXPECT_THAT(hazard_text(four_cells(), {.ascii = true}), Not(HasSubstr("·")));
}

TEST(HazardText, LeavesACellEmptyThatWasNotPlayed) {
  auto cells = four_cells();
  cells.erase(cells.begin());
  EXPECT_THAT(hazard_text(cells, {}), HasSubstr("late-release   freed\n"));
}

TEST(HazardText, GivesReasonsOfFailuresOnlyAndSharesThem) {
  auto cells = four_cells();
  EXPECT_THAT(hazard_text(cells, {}), EndsWith("\n\nlate-release / two: foreign-release\n"
                                               "  because of foreign-release\n"));
  cells[0] = a_cell("late-release", "one", "foreign-release");
  EXPECT_THAT(hazard_text(cells, {}), EndsWith("\n\nlate-release / one, two: foreign-release\n"
                                               "  because of foreign-release\n"));
  cells[0].evidence["reason"] = std::string("another one");
  EXPECT_THAT(hazard_text(cells, {}),
              EndsWith("\n\nlate-release / one: foreign-release\n  another one\n"
                       "late-release / two: foreign-release\n  because of foreign-release\n"));
}

TEST(HazardText, SaysWhyAFaultCannotBePlayed) {
  auto cells = four_cells();
  cells.push_back(a_cell("clock", "one", "not-played"));
  const std::string text = hazard_text(cells, {});
  EXPECT_THAT(text, HasSubstr("clock          unplayed"));
  EXPECT_THAT(text, EndsWith("\nclock / one: not-played\n  because of not-played\n"));
}

TEST(HazardText, ShowsARefusal) {
  EXPECT_THAT(hazard_text({{.scenario = "failover", .strategy = "x", .observed = "refused"}}, {}),
              EndsWith("\n\nfailover / x: refused\n  \n"));
}

TEST(Harm, IsNotRecoveryNorARefusalNorALossThatTheHolderKnewOf) {
  for (const char* outcome :
       {"safe", "recovers", "not-applicable", "not-played", "refused", "known-loss"}) {
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
  EXPECT_GT(gravity("known-loss"), gravity("safe"));
}

TEST(HazardExplained, TellsTheWholePlay) {
  const std::string text = explain(sample_hazards().front());
  EXPECT_THAT(text, HasSubstr("late-release / redis-set-nx: safe (foreign-release declared)\n"));
  EXPECT_THAT(text, HasSubstr("0.001 s  holder  asks for the lock\n"));
  EXPECT_THAT(text, HasSubstr("belief_gap_seconds: -0.25\n"));
}

TEST(HazardTable, HasARowForACell) {
  EXPECT_EQ(to_csv(hazard_table(sample_hazards())),
            "scenario,strategy,expected,observed,agrees,reason\r\n"
            "late-release,redis-set-nx,foreign-release,safe,false,"
            "\"the \"\"second\"\" still held its lock afterwards\"\r\n");
}

}  // namespace
}  // namespace lockbench::results

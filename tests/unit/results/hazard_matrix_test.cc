#include <gmock/gmock.h>

#include "results/tables/hazards.h"
#include "results/tables/show.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::Field;
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
  return {cell("late-release", "redis-one", "safe"),
          cell("late-release", "redis-two", "foreign-release"),
          cell("late-release", "redis-three", "foreign-release"),
          cell("crash-holding", "redis-one", "recovers"),
          cell("crash-holding", "redis-two", "recovers"),
          cell("crash-holding", "redis-three", "recovers"),
          cell("eviction", "redis-one", "not-applicable"),
          cell("eviction", "redis-two", "not-applicable"),
          cell("eviction", "redis-three", "not-applicable")};
}

std::string matrix(const std::vector<Hazard>& cells, const Look& look) {
  Result result = minimal_result();
  result.hazards = cells;
  return *render(result, {}, look);
}
std::string markdown(const std::vector<Hazard>& cells) {
  return matrix(cells, {.format = Format::markdown});
}
std::string text(const std::vector<Hazard>& cells, const TextStyle& style = {}) {
  return matrix(cells, {.style = style});
}

TEST(HazardMatrix, HasARowForAScenarioThatHarmsAndAColumnForThoseThatFareAlike) {
  EXPECT_THAT(markdown(some_cells()),
              HasSubstr("| scenario | redis-one | redis-two<br>redis-three |\n"
                        "|---|---|---|\n"
                        "| late-release | ✓ | ✗ freed |\n\n"));
  EXPECT_THAT(text(some_cells()), HasSubstr("1 redis-one\n2 redis-two, redis-three\n\n"
                                            "scenario      1  2\n"
                                            "late-release  ✓  ✗ freed\n"));
}

TEST(HazardMatrix, NamesWhatHarmsNoneAndLeavesOutWhatConcernsNone) {
  for (const std::string& shown : {markdown(some_cells()), text(some_cells())}) {
    EXPECT_THAT(shown, HasSubstr("None of redis-one, redis-two, redis-three is harmed by "
                                 "crash-holding.\n"));
    EXPECT_THAT(shown, Not(HasSubstr("eviction")));
  }
}

TEST(HazardMatrix, ExplainsWhatOccursAndNothingElse) {
  auto cells = some_cells();
  EXPECT_THAT(markdown(cells), HasSubstr("✗ freed: a client released the lock of another"));
  EXPECT_THAT(markdown(cells), Not(HasSubstr("stuck")));
  EXPECT_THAT(markdown(cells), Not(HasSubstr("!")));
  cells[3].observed = "stuck";
  cells[3].agrees = false;
  EXPECT_THAT(markdown(cells), HasSubstr("| crash-holding | ■ stuck! | ✓ |"));
  EXPECT_THAT(markdown(cells), HasSubstr("! differs from what the strategy declares"));
  EXPECT_THAT(text(cells), HasSubstr("crash-holding / redis-one: stuck (declared: recovers): "));
}

TEST(HazardMatrix, MarksAnUnstableOutcome) {
  auto cells = some_cells();
  cells[0].observed = "double-grant";
  cells[0].agrees = false;
  cells[0].evidence["unstable"] = true;
  cells[0].evidence["outcomes"] = std::string("safe 19 times, double-grant once");
  EXPECT_THAT(text(cells), HasSubstr("late-release  ✗ double~"));
  EXPECT_THAT(text(cells), HasSubstr("~ plays ended differently"));
  EXPECT_THAT(text(cells), HasSubstr("double-grant (declared: safe), unstable: safe 19 times"));
}

TEST(HazardMatrix, SaysNothingGoodOfWhatWasNotPlayed) {
  auto cells = some_cells();
  cells.erase(cells.begin() + 3);
  EXPECT_THAT(markdown(cells), HasSubstr("| crash-holding |  | ✓ |\n"));
  EXPECT_THAT(markdown(cells), Not(HasSubstr("None of")));
  cells.push_back(cell("eviction", "etcd", "not-applicable"));
  EXPECT_THAT(markdown(cells), HasSubstr("None of these hazards applies to etcd.\n"));
  EXPECT_THAT(markdown(cells), Not(HasSubstr("| etcd |")));
}

TEST(HazardMatrix, SaysWhyAFaultCannotBePlayedAndNothingGoodOfIt) {
  auto cells = some_cells();
  cells.push_back(cell("clock", "redis-one", "safe"));
  cells.push_back(cell("clock", "redis-two", "not-played"));
  EXPECT_THAT(markdown(cells), HasSubstr("| clock | ✓ | – |  |\n"));
  EXPECT_THAT(markdown(cells),
              HasSubstr("Not played: clock with redis-two: because of not-played.\n"));
  EXPECT_THAT(markdown(cells), Not(HasSubstr("by crash-holding, clock")));
}

TEST(HazardFailures, ShareALineForTheSameReason) {
  auto cells = some_cells();
  EXPECT_THAT(hazard_failures(cells),
              ElementsAre(Field(&Sentence::text,
                                "late-release / redis-two, redis-three: "
                                "foreign-release: because of foreign-release")));
  cells[1].evidence["reason"] = std::string("another one");
  EXPECT_THAT(
      hazard_failures(cells),
      ElementsAre(Field(&Sentence::text, EndsWith("redis-two: foreign-release: another one")),
                  Field(&Sentence::text, HasSubstr("redis-three: foreign-release: because"))));
  EXPECT_THAT(text(cells), HasSubstr("late-release / redis-two: foreign-release: another one\n"));
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
  const std::string told = explain(sample_hazards().front());
  EXPECT_THAT(told, HasSubstr("late-release / redis-set-nx: safe (foreign-release declared)\n"));
  EXPECT_THAT(told, HasSubstr("0.001 s  holder  asks for the lock\n"));
  EXPECT_THAT(told, HasSubstr("belief_gap_seconds: -0.25\n"));
}

}  // namespace
}  // namespace lockbench::results

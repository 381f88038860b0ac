#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/tables/hazards.h"

namespace lockbench::results {
namespace {

using testing::HasSubstr;
using testing::Not;

Hazard cell(std::string scenario, std::string strategy, const std::string& observed) {
  return {.scenario = std::move(scenario),
          .strategy = std::move(strategy),
          .expected = observed,
          .observed = observed};
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

TEST(HazardMarkdown, HasARowForAScenarioThatHarmsAndAColumnForThoseThatFareAlike) {
  const std::string text = hazard_markdown(some_cells());
  EXPECT_THAT(text, HasSubstr("| scenario | redis-one | redis-two<br>redis-three |\n"
                              "|---|:---:|:---:|\n"
                              "| late-release | ✓ | ✗ freed |\n\n"));
}

TEST(HazardMarkdown, NamesWhatHarmsNoneAndLeavesOutWhatConcernsNone) {
  const std::string text = hazard_markdown(some_cells());
  EXPECT_THAT(text,
              HasSubstr("None of redis-one, redis-two, redis-three is harmed by crash-holding.\n"));
  EXPECT_THAT(text, Not(HasSubstr("eviction")));
}

TEST(HazardMarkdown, ExplainsWhatOccurs) {
  auto cells = some_cells();
  EXPECT_THAT(hazard_markdown(cells), HasSubstr("✗ freed: a client released the lock of another"));
  EXPECT_THAT(hazard_markdown(cells), Not(HasSubstr("stuck")));
  EXPECT_THAT(hazard_markdown(cells), Not(HasSubstr("!")));
  cells[3].observed = "stuck";
  cells[3].agrees = false;
  EXPECT_THAT(hazard_markdown(cells), HasSubstr("| crash-holding | ■ stuck! | ✓ |"));
  EXPECT_THAT(hazard_markdown(cells), HasSubstr("! differs from what the strategy declares"));
}

TEST(HazardMarkdown, TellsFamiliesApart) {
  auto cells = some_cells();
  cells[2].strategy = cells[5].strategy = cells[8].strategy = "etcd";
  EXPECT_THAT(hazard_markdown(cells), HasSubstr("| redis-one | redis-two | etcd |"));
}

TEST(HazardMarkdown, BreaksTablesThatWouldBeTooWide) {
  std::vector<Hazard> cells;
  // No two of a family alike: each is hurt by a scenario of its own.
  for (const std::string family : {"redis", "zookeeper"}) {
    for (int i = 0; i < 5; ++i) {
      for (int scenario = 0; scenario < 5; ++scenario) {
        cells.push_back(cell("scenario-" + std::to_string(scenario),
                             family + "-" + std::to_string(i), scenario == i ? "stuck" : "safe"));
      }
    }
  }
  const std::string text = hazard_markdown(cells);
  EXPECT_THAT(text, HasSubstr("| redis-3 | redis-4 |\n"));
  EXPECT_THAT(text, HasSubstr("| scenario | zookeeper-0 | zookeeper-1 |"));
}

TEST(HazardMarkdown, SaysNothingGoodOfWhatWasNotPlayed) {
  auto cells = some_cells();
  cells.erase(cells.begin() + 3);
  EXPECT_THAT(hazard_markdown(cells), HasSubstr("| crash-holding |  | ✓ |\n"));
  EXPECT_THAT(hazard_markdown(cells), Not(HasSubstr("None of")));
  cells.push_back(cell("eviction", "etcd", "not-applicable"));
  EXPECT_THAT(hazard_markdown(cells), HasSubstr("None of these hazards applies to etcd.\n"));
  EXPECT_THAT(hazard_markdown(cells), Not(HasSubstr("| etcd |")));
}

TEST(HazardMarkdown, TellsALossThatTheHolderKnewOfFromTwoHolders) {
  const std::string text = hazard_markdown({cell("partition", "redis-one", "double-grant"),
                                            cell("partition", "redis-two", "known-loss")});
  EXPECT_THAT(text, HasSubstr("| partition | ✗ double | ○ knew |\n"));
  EXPECT_THAT(text, HasSubstr("○ knew: the lock ran out"));
}

TEST(HazardMarkdown, SaysWhyAFaultCannotBePlayedAndNothingGoodOfIt) {
  auto cells = some_cells();
  cells.push_back(cell("clock", "redis-one", "safe"));
  cells.push_back(cell("clock", "redis-two", "not-played"));
  cells.back().evidence["reason"] = std::string("its clock is out of reach");
  const std::string text = hazard_markdown(cells);
  EXPECT_THAT(text, HasSubstr("| clock | ✓ | – |  |\n"));
  EXPECT_THAT(text, HasSubstr("Not played: clock with redis-two: its clock is out of reach.\n"));
  EXPECT_THAT(text, Not(HasSubstr("by crash-holding, clock")));
}

}  // namespace
}  // namespace lockbench::results

#include "tests/unit/choose/fixtures.h"

namespace lockbench::choose {
namespace {

using testing::ElementsAre;

TEST(Rank, IsByTheFigureThatFits) {
  World world;
  for (const char* name : {"steady", "quick", "unmeasured"}) world.add(made_up(name));
  world.file().runs = {measured("steady", 5e-3, 0.01), measured("quick", 1e-3, 9)};
  EXPECT_THAT(names(world.choose({.clients = 1}).ranked),
              ElementsAre("quick", "steady", "unmeasured"));
  EXPECT_THAT(names(world.choose({.clients = 9}).ranked),
              ElementsAre("steady", "quick", "unmeasured"));
  EXPECT_EQ(world.choose({.clients = 1, .rate = 5}).yardstick.figure, "acquire.p99");
}

TEST(Rank, KnowsWhichFiguresAreBetterHigh) {
  World world;
  for (const char* name : {"slow", "quick"}) world.add(made_up(name));
  world.file().runs = {measured("slow", 1), measured("quick", 1)};
  world.file().runs[1].sections_per_second = 9;
  world.file().runs[1].sections = 9;
  for (const char* figure : {"sections_per_second", "sections"}) {
    EXPECT_THAT(names(world.choose({.rank_by = figure}).ranked), ElementsAre("quick", "slow"))
        << figure;
  }
  EXPECT_THAT(
      names(world.choose({.slos = {results::parse_threshold("sections>=0").value()}}).ranked),
      ElementsAre("quick", "slow"));
}

TEST(Rank, RepetitionsCountByTheirMedian) {
  World world;
  for (const char* name : {"one", "two"}) world.add(made_up(name));
  world.file().runs = {measured("one", 1), measured("one", 9), measured("one", 2),
                       measured("two", 3)};
  const Answer answer = world.choose({.clients = 1});
  EXPECT_THAT(names(answer.ranked), ElementsAre("one", "two"));
  EXPECT_EQ(answer.ranked[0].value, 2);
}

TEST(Rank, WhatAnotherOneMakesSuperfluousComesLast) {
  World world;
  world.add(made_up("careful", {}, {{"failover", HazardOutcome::double_grant}}));
  world.add(made_up("careless", {},
                    {{"failover", HazardOutcome::double_grant},
                     {"late-release", HazardOutcome::foreign_release}}));
  Descriptor elsewhere = made_up("elsewhere", {}, {{"failover", HazardOutcome::double_grant}});
  elsewhere.backend = "etcd";
  elsewhere.hazards.push_back({"late-release", HazardOutcome::foreign_release});
  world.add(elsewhere);
  world.file().runs = {measured("careful", 9), measured("careless", 1), measured("elsewhere", 10)};
  const Answer answer = world.choose({.clients = 1});
  ASSERT_THAT(names(answer.ranked), ElementsAre("careful", "elsewhere", "careless"));
  EXPECT_EQ(answer.ranked[2].better->strategy->name, "careful");
  EXPECT_THAT(answer.ranked[2].falls_to, ElementsAre("late-release"));
  EXPECT_EQ(answer.ranked[1].better, nullptr) << "on another store";
}

TEST(Rank, FencingCountsOnlyWhereSomethingChecksIt) {
  World world;
  world.add(made_up("fenced", {.fencing = true}));
  world.add(made_up("plain", {}, {{"pause-holding-fenced", HazardOutcome::lost_update}}));
  world.file().runs = {measured("fenced", 2), measured("plain", 1)};
  Requirements requirements{.clients = 1};
  EXPECT_THAT(names(world.choose(requirements).ranked), ElementsAre("fenced", "plain"));
  requirements.fencing_resource = false;
  EXPECT_THAT(names(world.choose(requirements).ranked), ElementsAre("plain", "fenced"));
}

}  // namespace
}  // namespace lockbench::choose

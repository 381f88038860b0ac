#include "tests/unit/choose/fixtures.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(Rank, IsByTheFigureThatFits) {
  World world{"steady", "quick", "unmeasured"};
  world.file() = under(9, {measured("steady", 5e-3, 0.01), measured("quick", 1e-3, 9)});
  EXPECT_THAT(names(world.choose({.clients = 1}).ranked),
              ElementsAre("quick", "steady", "unmeasured"));
  const Requirements too_much{.work_p99 = std::chrono::milliseconds(2), .clients = 9, .rate = 700};
  EXPECT_THAT(names(world.choose(too_much).ranked), ElementsAre("steady", "quick", "unmeasured"));
  const auto figure = [&](const Requirements& requirements) {
    return world.choose(requirements).ranked_by.figure;
  };
  EXPECT_EQ(figure({.clients = 1}), "acquire.p50");
  EXPECT_EQ(figure({.clients = 2, .rate = 5}), "acquire.p99");
  EXPECT_EQ(figure({}), "acquire.p99") << "a mutex is for several clients";
  EXPECT_EQ(figure(too_much), "fairness.longest_wait_seconds");
  EXPECT_EQ(figure({.use = Use::leader}), "") << "no wait decides who should lead";
}

TEST(Rank, KnowsWhichFiguresAreBetterHigh) {
  World world{"slow", "quick"};
  world.file().runs = {measured("slow", 1), measured("quick", 1)};
  world.file().runs[1].sections_per_second = 9;
  world.file().runs[1].sections = 9;
  for (const char* figure : {"sections_per_second", "sections"}) {
    EXPECT_THAT(names(world.choose({.clients = 1, .rank_by = figure}).ranked),
                ElementsAre("quick", "slow"))
        << figure;
  }
  const auto wanted = results::parse_threshold("sections>=0").value();
  EXPECT_THAT(names(world.choose({.clients = 1, .slos = {wanted}}).ranked),
              ElementsAre("quick", "slow"));
}

TEST(Rank, ComparesInvalidRunsOnlyWithOneAnother) {
  World world{"quick", "a-slow"};
  world.file().runs = {measured("quick", 1), measured("a-slow", 9)};
  world.file().runs[0].generator = {.valid = false, .reasons = {"steal"}};
  EXPECT_THAT(names(world.choose({.clients = 1}).ranked), ElementsAre("a-slow", "quick"));
  world.file().runs[1].generator = world.file().runs[0].generator;
  const Answer answer = world.choose({.clients = 1});
  EXPECT_THAT(names(answer.ranked), ElementsAre("quick", "a-slow"));
  EXPECT_EQ(answer.ranked[0].tier, 1);
  EXPECT_EQ(answer.ranked[1].tier, 2);
}

TEST(Rank, RepetitionsCountByTheirMedian) {
  World world{"one", "two"};
  world.file().runs = {measured("one", 1), measured("one", 9), measured("one", 2),
                       measured("two", 3)};
  const Answer answer = world.choose({.clients = 1});
  EXPECT_THAT(names(answer.ranked), ElementsAre("one", "two"));
  EXPECT_EQ(answer.ranked[0].value, 2);
}

TEST(Rank, TiesGoToFewerServersThenFewerCommandsThenFewerHazards) {
  World world;
  world.add(made_up("five", {.nodes = 2}));
  world.add(made_up("talks"));
  world.add(made_up("falls", {}, {{"failover", HazardOutcome::double_grant}}));
  world.add(made_up("stands"));
  world.add(made_up("slower"));
  for (const char* name : {"five", "talks", "falls", "stands", "slower"}) {
    results::Run run = measured(name, std::string_view(name) == "slower" ? 1.2 : 1);
    run.commands_per_section = std::string_view(name) == "talks" ? 3 : 2;
    world.file().runs.push_back(run);
  }
  const Answer answer = world.choose({.clients = 1});
  EXPECT_THAT(names(answer.ranked), ElementsAre("stands", "falls", "talks", "five", "slower"));
  EXPECT_EQ(answer.ranked[3].tier, 1);
  EXPECT_EQ(answer.ranked[4].tier, 2);
}

TEST(Rank, WhatPracticeHasSupersededIsNeverFirst) {
  World world;
  Descriptor old = made_up("old");
  old.superseded_by = "new";
  old.superseded_because = "it is old";
  world.add(old);
  world.add(made_up("new"));
  world.file().runs = {measured("old", 1), measured("new", 5)};
  EXPECT_THAT(names(world.choose({.clients = 1}).ranked), ElementsAre("new", "old"));
}

TEST(Rank, WhatWasNotMeasuredDoesNotSendFewerCommands) {
  World world;
  const Traits lasting{.renewable = true};
  world.add(made_up("a-unknown", lasting));
  world.add(made_up("measured", lasting));
  world.file().runs = {measured("measured", 1)};
  world.file().runs[0].commands_per_section = 2;
  EXPECT_THAT(names(world.choose({.use = Use::leader}).ranked),
              ElementsAre("measured", "a-unknown"));
}

TEST(Rank, SingleWaitsUnderContentionAreNotToldApartByAPollingStep) {
  const auto order = [](double wait_of_brief) {
    World world;
    world.add(made_up("talks"));
    world.add(made_up("brief"));
    world.file() = under(32, {measured("talks", 0.20), measured("brief", wait_of_brief)});
    world.file().runs[0].commands_per_section = 3;
    world.file().runs[1].commands_per_section = 2;
    const Answer answer = world.choose({.clients = 32});
    EXPECT_EQ(answer.ranked[1].tier, 1);
    return names(answer.ranked);
  };
  EXPECT_THAT(order(0.25), ElementsAre("brief", "talks"));
  EXPECT_THAT(order(0.50), ElementsAre("talks", "brief")) << "more than twice as bad is last";
}

TEST(Rank, AfterMeasuringIsOfWhatQualifiedBeforeWithTheSettingsItHad) {
  const Descriptor racer = made_up("racer"), slow = made_up("slow");
  results::Run late = measured("slow", 1e-3);
  late.outcomes = {.acquired = 600, .timed_out = 100};
  const Requirements requirements{.work_p50 = 1ms, .clients = 32, .rate = 700};
  const Evidence known({{"mine.json", under(32, {measured("racer", 1e-3), late})}}, {});
  const Answer before = choose(requirements, {&racer, &slow}, known);
  ASSERT_THAT(names(before.ranked), ElementsAre("racer"));
  const auto after = [&](const results::Outcomes& outcomes, const Answer* earlier) {
    results::Run run = measured("racer", 1e-3);
    run.outcomes = outcomes;
    run.release = {.count = 9, .max = 0.5};
    const Evidence file({{"measured.json", under(32, {run})}}, {});
    return choose(requirements, {&racer, &slow}, file, earlier);
  };
  EXPECT_THAT(after(late.outcomes, &before).ranked, testing::IsEmpty());
  EXPECT_THAT(names(after(late.outcomes, nullptr).ranked), ElementsAre("slow"))
      << "the file alone knows nothing of it";
  const Answer kept = after({.acquired = 700}, &before);
  EXPECT_EQ(ttl_of(settings_of(kept)), ttl_of(settings_of(before)));
  EXPECT_NE(ttl_of(settings_of(kept)), ttl_of(settings_of(after({.acquired = 700}, nullptr))));
}

TEST(Rank, FencingCountsOnlyWhereSomethingChecksIt) {
  World world;
  world.add(made_up("fenced", {.fencing = true}));
  world.add(made_up("a-plain", {}, {{"pause-holding-fenced", HazardOutcome::lost_update}}));
  world.file().runs = {measured("fenced", 1), measured("a-plain", 1)};
  Requirements requirements{.clients = 1};
  EXPECT_THAT(names(world.choose(requirements).ranked), ElementsAre("fenced", "a-plain"));
  requirements.fencing_resource = false;
  EXPECT_THAT(names(world.choose(requirements).ranked), ElementsAre("a-plain", "fenced"));
}

TEST(Leader, NeedsALockThatLastsAndThatOthersCanTakeOver) {
  World world;
  world.add(made_up("fixed"));
  world.add(
      made_up("renewed", {.renewable = true}, {{"pause-holding", HazardOutcome::lost_update}}));
  world.add(made_up("connected", {.expiry = Expiry::session, .ends_with_connection = true}));
  const Answer answer = world.choose({.use = Use::leader});
  EXPECT_THAT(names(answer.ranked), ElementsAre("renewed", "connected"))
      << "while its holder is frozen, nobody else leads";
  ASSERT_EQ(answer.takeovers.size(), 4U);
  EXPECT_THAT(answer.takeovers[2].text, testing::HasSubstr("after up to 3s"));
}

}  // namespace
}  // namespace lockbench::choose

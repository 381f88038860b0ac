#include "choose/evidence.h"
#include "tests/unit/choose/fixtures.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Rank, IsByTheFigureThatFits) {
  World world{"steady", "quick", "unmeasured"};
  world.file() = under(9, {measured("steady", 5e-3, 0.01), measured("quick", 1e-3, 9)});
  EXPECT_THAT(names(world.choose({.clients = 1}).ranked),
              ElementsAre("quick", "steady", "unmeasured"));
  const auto figure = [&](const Requirements& requirements) {
    return world.choose(requirements).ranked_by.figure;
  };
  EXPECT_EQ(figure({.clients = 1}), "acquire.p50");
  EXPECT_EQ(figure({.clients = 2, .rate = 5}), "acquire.p99");
  EXPECT_EQ(figure({}), "acquire.p99") << "a mutex is for several clients";
  EXPECT_EQ(figure({.work_p99 = std::chrono::milliseconds(2), .clients = 9, .rate = 700}),
            "acquire.p99")
      << "however busy it is";
  EXPECT_EQ(figure({.work_p50 = 1h, .clients = 9}), "") << "clients wait for the work of others";
  EXPECT_EQ(figure({.use = Use::leader}), "") << "no wait decides who should lead";
}

TEST(Rank, AtARateIsNotByClientsThatAskOnlyWhenTheyWereServed) {
  auto saturated = under(32, {measured("brief", 1e-4)}),
       at_rate = under(32, {measured("queue", 1)});
  saturated.workload["rate"] = nullptr;
  const Evidence evidence({{"saturated", saturated}, {"at rate", at_rate}}, {});
  // 84 % busy is nearer to 100 % than to 70 %.
  const Requirements asked{.work_p50 = 1ms, .clients = 32, .rate = 840};
  EXPECT_THAT(evidence.basis_for(asked).name, HasSubstr("at rate"));
  EXPECT_THAT(Evidence({{"saturated", saturated}}, {}).basis_for(asked).sources, IsEmpty());
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

TEST(Rank, WithoutAValidRunOfTheMeasurementIsNotDecided) {
  const Descriptor racer = made_up("racer");
  const Requirements requirements{.work_p50 = 1ms, .clients = 32, .rate = 700};
  const Evidence known({}, {{"reference", under(32, {measured("racer", 1e-3)})}});
  const Answer before = choose(requirements, {&racer}, known);
  EXPECT_EQ(before.not_decided, "") << "nobody asked to measure";
  const auto after = [&](bool valid) {
    results::Run run = measured("racer", 1e-3);
    run.generator.valid = valid;
    if (!valid) run.generator.reasons = {"other programs"};
    const Evidence both({{"measured.json", under(32, {run})}},
                        {{"reference", under(32, {measured("racer", 1e-3)})}});
    return choose(requirements, {&racer}, both, &before).not_decided;
  };
  EXPECT_EQ(after(true), "");
  EXPECT_THAT(after(false), HasSubstr("no valid run"));
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
  EXPECT_THAT(answer.takeovers[2].text, testing::HasSubstr("after 2 s to 3 s"));
}

TEST(Basis, IsTheLoadNearestToWhatWasAsked) {
  const Evidence evidence({}, {{"one", under(1, {measured("a", 1)})},
                               {"eight", under(8, {measured("a", 1)})},
                               {"many", under(500, {measured("a", 1)})}});
  const auto basis = [&](const Requirements& requirements) {
    return evidence.basis_for(requirements).name.substr(0, 3);
  };
  EXPECT_EQ(basis({.clients = 1}), "one");
  EXPECT_NE(basis({}), "one") << "a mutex is for several clients";
  EXPECT_EQ(basis({.clients = 5}), "eig");
  EXPECT_EQ(basis({.clients = 200}), "man");
}

TEST(Basis, IsNearInUtilisationRatherThanInTheNumberOfClients) {
  const auto at_rate = [](double rate) {
    auto result = under(32, {measured("a", 1)});
    result.workload["rate"] = rate;
    result.workload["hold"] = 0.01;
    return result;
  };
  const Evidence evidence({}, {{"busy", at_rate(90)}, {"free", at_rate(10)}});
  const auto basis = [&](double rate) {
    return evidence
        .basis_for(
            {.work_p50 = std::chrono::milliseconds(10), .clients = 300, .rate = rate, .keys = 50})
        .name.substr(0, 4);
  };
  EXPECT_EQ(basis(4000), "busy");
  EXPECT_EQ(basis(1000), "free");
}

TEST(Basis, IsARunOfTheLoadAskedForEvenWithMoreLocksThanClients) {
  auto spread = under(10, {measured("a", 1)});
  spread.workload["keys"] = std::int64_t{19};
  const Requirements asked{
      .work_p50 = std::chrono::milliseconds(1), .clients = 10, .rate = 700, .keys = 19};
  const Evidence known({}, {{"spread", spread}});
  EXPECT_THAT(known.basis_for(asked).runs_of("a").runs, SizeIs(1));
  EXPECT_THAT(known.basis_for(asked).name, HasSubstr("2 clients"));
  spread.workload["rate"] = nullptr;
  const Evidence unknown({}, {{"spread", spread}});
  EXPECT_THAT(unknown.basis_for(asked).runs_of("a").runs, IsEmpty())
      << "nobody knows whether they met";
}

TEST(Basis, AKeyForEachClientIsNoContention) {
  auto result = under(8, {});
  result.workload["keys"] = std::string("per-client");
  EXPECT_FALSE(measured_load(result).contended());
  result.workload["keys"] = std::int64_t{2};
  EXPECT_EQ(measured_load(result).clients, 4);
  result.workload = {
      {"clients", std::int64_t{100'000}}, {"keys", std::int64_t{1'000'000}}, {"key_skew", 1.0}};
  // The harmonic number of a million.
  EXPECT_NEAR(measured_load(result).clients.value(), 100'000 / 14.392727, 0.01);
}

TEST(Basis, DoesNotMixMachinesNorLoads) {
  auto twin = under(1, {measured("b", 2)}), other = under(1, {measured("c", 1)});
  other.environment.cpu = "another";
  const Evidence evidence({{"m1.json", under(1, {measured("a", 1)})},
                           {"twin.json", twin},
                           {"m2.json", under(500, {measured("a", 3)})},
                           {"m3.json", other}},
                          {});
  const Requirements one{.clients = 1};
  const auto basis = evidence.basis_for(one);
  EXPECT_THAT(basis.name, HasSubstr("m1.json, twin.json: 1 client"));
  EXPECT_THAT(basis.left_out, ElementsAre(AllOf(HasSubstr("m2.json"), HasSubstr("1 and 500")),
                                          AllOf(HasSubstr("m3.json"), HasSubstr("another"))));
  EXPECT_THAT(evidence.basis_for(one).runs_of("a").runs, SizeIs(1));
  EXPECT_THAT(evidence.basis_for(one).runs_of("b").runs, SizeIs(1));
  EXPECT_THAT(evidence.basis_for(one).runs_of("c").runs, IsEmpty());
}

TEST(Basis, IsNotWhatWasMeasuredInVain) {
  auto broken = under(1, {measured("a", 1)});
  broken.runs[0].generator.valid = false;
  const Evidence evidence({{"broken", broken}, {"eight", under(8, {measured("a", 1)})}}, {});
  EXPECT_THAT(evidence.basis_for({.clients = 1}).name, HasSubstr("eight"));
}

TEST(Rank, InvalidRunsCountOnlyWhereThereAreNoOthersAndThenAsUnmeasured) {
  World world{"half", "never", "valid"};
  world.file() = under(1, {measured("half", 1), measured("half", 5), measured("never", 1),
                           measured("valid", 3), measured("half", 9)});
  world.file().runs[0].generator.valid = false;
  world.file().runs[2].generator.valid = false;
  // A run under a fault is no evidence about the lock.
  world.file().runs[4].faults = {{.fault = "pause"}};
  const Answer answer = world.choose({.clients = 1});
  ASSERT_THAT(names(answer.ranked), ElementsAre("valid", "half", "never"));
  EXPECT_EQ(answer.ranked[1].value, 5);
  EXPECT_FALSE(answer.ranked[1].only_invalid_runs);
  EXPECT_TRUE(answer.ranked[2].only_invalid_runs);
  EXPECT_THAT(to_text(answer, {}, true), HasSubstr("1 s (invalid run)"));
}

TEST(Answer, SaysHowFarTheMeasuredLoadIsAway) {
  World world{"x"};
  world.file() = under(8, {measured("x", 1)});
  EXPECT_THAT(world.choose({.clients = 8}).differences, IsEmpty());
  EXPECT_THAT(world.choose({.clients = 80}).differences,
              ElementsAre(HasSubstr("8 clients at a lock instead of 80")));
  world.file() = under(1, {measured("x", 1)});
  EXPECT_EQ(world.choose({.clients = 80}).measured_in, "") << "nobody contended";
}

}  // namespace
}  // namespace lockbench::choose

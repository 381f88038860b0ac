#include "tests/unit/choose/fixtures.h"

namespace lockbench::choose {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const Traits with_numbers{.fencing = true};

/// Requirements, a strategy, and the reason why it does not qualify; empty if it does.
struct Case {
  std::string what;
  Requirements requirements;
  Descriptor strategy;
  std::string requirement{}, text{};
  std::vector<results::Hazard> plays{};
};

constexpr KnownHazard kStale{"pause-holding", HazardOutcome::lost_update};
constexpr KnownHazard kStaleThoughFenced{"pause-holding-fenced", HazardOutcome::lost_update};
constexpr KnownHazard kStuck{"crash-holding", HazardOutcome::stuck};

Descriptor falls_to(std::vector<KnownHazard> hazards, Traits traits = {}) {
  return made_up("x", std::move(traits), std::move(hazards));
}

std::vector<Case> by_nature() {
  Descriptor etcd = made_up("x");
  etcd.backend = "etcd";
  return {
      {"nothing", {}, falls_to({kStale})},
      {"basic", {}, falls_to({kStuck}), "--waive crash", "crash-holding: stuck"},
      {"waived", {.waived = {"crash"}}, falls_to({kStuck})},
      {"leader", {.use = Use::leader}, made_up("x"), "--for leader", "cannot be renewed"},
      {"once", {.use = Use::once, .work_p99 = std::chrono::hours(12)}, made_up("x")},
      {"control", {}, made_up("x", {.promises_exclusion = false}), "", "a control"},
      {"process", {}, made_up("x", {.one_process = true}), "", "one process"},
      {"store", {.stores = {"redis"}}, etcd, "--stores redis", "another store"},
      {"store_there", {.stores = {"redis", "etcd"}}, etcd},
      {"fair", {.fair = true}, made_up("x"), "--fair", "not first come"},
      {"is_fair", {.fair = true}, made_up("x", {.fair = true})},
      {"reentrant", {.reentrant = true}, made_up("x"), "--reentrant", "not reentrant"},
      {"reentrant_lock", {.reentrant = true}, made_up("x", {.reentrant = true})},
      {"shared", {.shared = true}, made_up("x"), "--shared", "not with a shared mode"},
  };
}

/// The same case with the outcome of a play.
Case after(std::string_view scenario, std::string_view outcome, Case one) {
  one.plays = {played(scenario, "x", outcome)};
  return one;
}

std::vector<Case> by_fault() {
  const Requirements by_crash = surviving({"crash"}), by_pause = surviving({"pause"});
  const std::string stuck = "crash-holding: stuck", lost = "pause-holding: lost-update";
  return {
      {"stuck", by_crash, falls_to({kStuck}), "--survive crash", stuck},
      after("crash-holding", "stuck", {"seen", by_crash, made_up("x"), "--survive crash", stuck}),
      after("crash-holding", "recovers",
            {"seen_only", by_crash, falls_to({kStuck}), "--survive crash", stuck}),
      {"other_fault", surviving({"failover"}), falls_to({kStale})},
      after("failover", "refused", {"refused", surviving({"failover"}), made_up("x")}),
      {"pause", by_pause, falls_to({kStale, kStaleThoughFenced}), "--survive pause", lost},
      {"pause_fenced", by_pause, falls_to({kStale}, with_numbers)},
      {"pause_checked", surviving({"pause"}, {.fencing_resource = true}),
       falls_to({kStale}, with_numbers)},
      {"pause_unchecked", surviving({"pause"}, {.fencing_resource = false}),
       falls_to({kStale}, with_numbers), "--survive pause",
       "do not help, as the resource does not check them"},
      {"pause_fence_fails", by_pause, falls_to({kStale, kStaleThoughFenced}, with_numbers),
       "--survive pause", lost},
      {"glob", surviving({"crash-*"}, {.waived = {"crash"}}), falls_to({kStuck}),
       "--survive crash-*", stuck},
      after("store-clock-jump", "not-played",
            {"declared_not_played", surviving({"clock-jump"}),
             falls_to({{"store-clock-jump", HazardOutcome::double_grant}}), "--survive clock-jump",
             "store-clock-jump: double-grant"}),
      {"known_loss", surviving({"overrun"}),
       falls_to({{"overrun-holding", HazardOutcome::known_loss}}, with_numbers),
       "--survive overrun", "overrun-holding: known-loss"},
  };
}

class Examined : public testing::TestWithParam<Case> {};

TEST_P(Examined, IsRuledOutForThatReasonAlone) {
  const Case& c = GetParam();
  World world;
  world.add(c.strategy);
  world.file().hazards = c.plays;
  const Answer answer = world.choose(c.requirements);
  const auto& against = candidate(answer, c.strategy.name).against;
  if (c.text.empty()) {
    EXPECT_THAT(against, IsEmpty()) << against.front().text;
    return;
  }
  ASSERT_THAT(against, SizeIs(1));
  EXPECT_EQ(against.front().requirement, c.requirement);
  EXPECT_THAT(against.front().text, HasSubstr(c.text));
  EXPECT_NE(against.front().evidence, "");
}

std::string what_of(const testing::TestParamInfo<Case>& one) { return one.param.what; }

INSTANTIATE_TEST_SUITE_P(Natures, Examined, testing::ValuesIn(by_nature()), what_of);
INSTANTIATE_TEST_SUITE_P(Faults, Examined, testing::ValuesIn(by_fault()), what_of);

TEST(Evidence, WhatNobodyPlayedIsACondition) {
  World world{"x"};
  const Answer unplayed = world.choose(surviving({"partition"}));
  EXPECT_THAT(candidate(unplayed, "x").conditions,
              ElementsAre(Field(&Reason::text, AllOf(HasSubstr("partition-holder, partition-"),
                                                     HasSubstr("only declared")))));
  world.file().hazards = {played("partition-holder", "x", "safe"),
                          played("partition-holder-late", "x", "safe")};
  EXPECT_THAT(candidate(world.choose(surviving({"partition"})), "x").conditions, IsEmpty());
}

TEST(Evidence, ALossThatTheHolderKnowsOfIsAConditionWhereTheWorkMayEnd) {
  World world;
  world.add(made_up("x", {}, {{"partition-holder", HazardOutcome::known_loss}}));
  EXPECT_THAT(candidate(world.choose(surviving({"partition"})), "x").conditions,
              Contains(Field(&Reason::text, HasSubstr("only if the holder looks at its lease"))));
}

TEST(Evidence, ALockThatDoesNotRunOutSurvivesAPauseButBlocksOthers) {
  World world;
  world.add(made_up("x", {.expiry = Expiry::session, .ends_with_connection = true}));
  world.file().hazards = {played("pause-holding", "x", "not-applicable")};
  const Answer answer = world.choose(surviving({"pause"}));
  EXPECT_THAT(candidate(answer, "x").not_concerned, IsEmpty());
  EXPECT_THAT(candidate(answer, "x").in_favour,
              ElementsAre(Field(&Reason::text, HasSubstr("pause-holding: others wait"))));
  EXPECT_THAT(candidate(answer, "x").conditions,
              Contains(Field(&Reason::text, HasSubstr("others wait"))));
}

TEST(Evidence, AFaultThatNobodyCanCauseIsNotSurvived) {
  World world{"x"};
  world.file().hazards = {played("store-clock-jump", "x", "not-played")};
  const Answer answer = world.choose(surviving({"clock-jump"}));
  EXPECT_THAT(
      candidate(answer, "x").conditions,
      Contains(AllOf(Field(&Reason::text,
                           HasSubstr("store-clock-jump: not played, so not known: it was seen")),
                     Field(&Reason::evidence, HasSubstr("not played in mine.json; lockbench")))));
  EXPECT_THAT(candidate(answer, "x").in_favour,
              ElementsAre(Field(&Reason::evidence, AllOf(HasSubstr("not played in mine.json"),
                                                         Not(HasSubstr("seen in"))))));
}

TEST(Evidence, FencingThatNobodyPromisedToCheckIsACondition) {
  World world;
  world.add(made_up("x", with_numbers, {{"pause-holding", HazardOutcome::lost_update}}));
  world.file().hazards = {played("pause-holding-fenced", "x", "safe")};
  const Answer answer = world.choose(surviving({"pause"}));
  EXPECT_THAT(candidate(answer, "x").conditions,
              ElementsAre(Field(&Reason::text, AllOf(HasSubstr("only if"),
                                                     HasSubstr("pause-holding: lost-update")))));
}

TEST(Evidence, WhatNoPlayConcernsIsAConditionAndComesLast) {
  World world{"seen", "spared"};
  const auto spared = [](std::string_view scenario) {
    results::Hazard play = played(scenario, "spared", "not-applicable");
    play.evidence["reason"] = std::string("it keeps nothing");
    return play;
  };
  world.file().hazards = {played("partition-holder", "seen", "safe"),
                          spared("partition-holder"),
                          spared("partition-holder-late"),
                          spared("store-restart-durable"),
                          spared("failover"),
                          spared("failover-sentinel")};
  world.file().runs = {measured("seen", 9), measured("spared", 1)};
  const Answer answer = world.choose(surviving({"partition"}));
  EXPECT_THAT(names(answer.ranked), ElementsAre("seen", "spared"));
  EXPECT_THAT(candidate(answer, "spared").in_favour, IsEmpty());
  EXPECT_THAT(candidate(answer, "spared").conditions,
              ElementsAre(Field(&Reason::text,
                                "no play of this fault applies to it: it keeps nothing; its "
                                "servers do not vote")));
  EXPECT_THAT(candidate(world.choose(surviving({"failover"})), "spared").against,
              ElementsAre(Field(&Reason::text, HasSubstr("one server"))));
  world.file().hazards->push_back(played("store-restart-empty", "spared", "double-grant"));
  EXPECT_THAT(candidate(world.choose(surviving({"restart"})), "spared").against,
              ElementsAre(Field(&Reason::text, HasSubstr("store-restart-empty: double-grant"))));
}

TEST(Evidence, ReplicasOrNodesMayTakeOver) {
  World world;
  world.add(made_up("quorum", {.nodes = 2}));
  world.add(made_up("replicas", {.needs_replicas = true}));
  world.file().hazards.emplace();
  for (const char* name : {"quorum", "replicas"}) {
    for (const char* scenario : {"failover", "failover-sentinel"}) {
      world.file().hazards->push_back(played(scenario, name, "not-applicable"));
    }
  }
  EXPECT_THAT(names(world.choose(surviving({"failover"})).ranked),
              ElementsAre("replicas", "quorum"))
      << "of fewer servers";
}

TEST(Exclusion, ThatWasSeenBrokenRulesOut) {
  World world{"x"};
  world.file().runs = {measured("x", 1)};
  world.file().runs[0].audit = {.fence_regressions = 3, .verdict = results::Verdict::violated};
  EXPECT_THAT(candidate(world.choose({.clients = 2}), "x").against,
              ElementsAre(Field(&Reason::text, HasSubstr("3 fencing numbers"))));
}

TEST(Relaxations, AreTheSmallestThatLetOthersIn) {
  World world;
  const KnownHazard fails{"failover", HazardOutcome::double_grant};
  world.add(made_up("a", {}, {fails}));
  world.add(made_up("b", {}, {fails, {"partition-holder", HazardOutcome::double_grant}}));
  world.add(made_up("c", {.promises_exclusion = false}));
  const Answer answer = world.choose(surviving({"failover", "partition"}));
  EXPECT_THAT(answer.ranked, IsEmpty());
  ASSERT_THAT(answer.relaxations, SizeIs(1));
  EXPECT_THAT(answer.relaxations[0].requirements, ElementsAre("--survive failover"));
  EXPECT_THAT(answer.relaxations[0].strategies, ElementsAre("a"));
  EXPECT_THAT(answer.relaxations[0].instead, ElementsAre(HasSubstr("may run twice")));

  World only_b;
  only_b.add(made_up("b", {}, {fails, {"partition-holder", HazardOutcome::double_grant}}));
  const Answer both = only_b.choose(surviving({"failover", "partition"}));
  ASSERT_THAT(both.relaxations, SizeIs(1));
  EXPECT_THAT(both.relaxations[0].requirements, SizeIs(2));
}

}  // namespace
}  // namespace lockbench::choose

#include "strategies/registry.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/unit/choose/fixtures.h"

namespace lockbench::choose {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(FaultWords, StandForScenariosThatExist) {
  for (const Survival& word : fault_words()) {
    for (const auto* names : {&word.scenarios, &word.fenced, &word.otherwise, &word.on_condition}) {
      for (const std::string& name : *names) {
        EXPECT_NE(hazards::find_scenario(name), nullptr) << word.word << ": " << name;
      }
    }
  }
}

TEST(FaultWords, ScenariosAndGlobsAreWordsToo) {
  EXPECT_EQ(find_survival("rogue-delete")->scenarios, std::vector<std::string>{"rogue-delete"});
  EXPECT_GE(find_survival("crash-*")->scenarios.size(), 3U);
  EXPECT_EQ(find_survival("crush"), std::nullopt);
  EXPECT_EQ(find_survival(""), std::nullopt);
}

TEST(Registry, TheReferenceAnswersWithAndWithoutContention) {
  Requirements requirements;
  requirements.stores = {"redis"};
  EXPECT_THAT(ask(requirements).measured_in, HasSubstr("30 % busy"));
  requirements.clients = 1;
  EXPECT_THAT(ask(requirements).measured_in, HasSubstr("1 client"));
  requirements.clients = 200;
  EXPECT_THAT(ask(requirements).measured_in, HasSubstr("70 % busy"));
}

TEST(Registry, WhatSupersedesIsThere) {
  for (const Descriptor* strategy : all_strategies()) {
    if (strategy->superseded_by.empty()) continue;
    EXPECT_NE(find_strategy(strategy->superseded_by), nullptr) << strategy->name;
    EXPECT_NE(strategy->superseded_because, "") << strategy->name;
  }
}

TEST(Registry, ALeaderOnZooKeeperOutlastsAMemberThatIsCutOff) {
  const Answer answer = ask({.stores = {"zookeeper"}, .use = Use::leader});
  ASSERT_FALSE(settings_of(answer).empty());
  EXPECT_EQ(settings_of(answer).front().value, "12s");
  ASSERT_EQ(answer.takeovers.size(), 6U);
  EXPECT_THAT(answer.takeovers.back().text, HasSubstr("fence its writes"));
  EXPECT_THAT(to_text(answer, {}, true), HasSubstr("JavaScript: no known library implements it"));
}

/// Re-entrancy is an attribute of a library.
TEST(Registry, AReentrantLockIsOfferedOnEveryStoreWithALibraryThatHasIt) {
  for (const char* store : {"redis", "postgres", "zookeeper", "etcd"}) {
    EXPECT_FALSE(ask({.stores = {store}, .reentrant = true}).ranked.empty()) << store;
  }
  const Answer curator = ask({.stores = {"zookeeper"}, .reentrant = true});
  EXPECT_EQ(curator.ranked.front().strategy->name, "zookeeper");
  EXPECT_THAT(to_text(curator, {}),
              AllOf(HasSubstr("Curator InterProcessMutex (Java)"),
                    HasSubstr("new InterProcessMutex"), Not(HasSubstr("Python"))));
  EXPECT_THAT(to_text(ask({.stores = {"etcd"}, .reentrant = true}), {}),
              HasSubstr("the first release frees the lock"));
  EXPECT_TRUE(ask({.stores = {"memcached"}, .reentrant = true}).ranked.empty());
}

TEST(Registry, EveryFirstChoiceHasALibraryAndAGuard) {
  for (const Use use : {Use::mutex, Use::once, Use::leader}) {
    for (const char* store : {"redis", "postgres", "zookeeper", "etcd"}) {
      const Answer answer = ask({.stores = {store}, .use = use});
      ASSERT_FALSE(answer.ranked.empty()) << store;
      const Descriptor& best = *answer.ranked.front().strategy;
      EXPECT_FALSE(best.libraries.empty()) << best.name;
      EXPECT_EQ(best.superseded_by, "") << best.name;
      EXPECT_THAT(answer.guard, HasSubstr("UPDATE"));
    }
  }
}

TEST(Registry, EveryReasonSaysWhereToLook) {
  const Answer answer = ask(surviving({"crash", "pause", "failover"}));
  for (const auto* candidates : {&answer.ranked, &answer.ruled_out}) {
    for (const Candidate& one : *candidates) {
      for (const auto* reasons : {&one.against, &one.in_favour, &one.conditions}) {
        for (const Reason& reason : *reasons) EXPECT_NE(reason.evidence, "") << reason.text;
      }
    }
  }
  for (const Setting& setting : settings_of(answer))
    EXPECT_NE(setting.evidence, "") << setting.option;
}

TEST(Text, HasTheAnswerInEveryForm) {
  Requirements requirements = surviving({"crash", "pause"});
  requirements.stores = {"redis"};
  requirements.work_p99 = std::chrono::milliseconds(80);
  requirements.clients = 200;
  const Answer answer = ask(requirements);
  ASSERT_FALSE(answer.ranked.empty());
  const std::string best(answer.ranked.front().strategy->name);
  EXPECT_THAT(to_text(answer, {}, true),
              AllOf(HasSubstr("\nSettings\n"), HasSubstr("\nRuled out\n"),
                    HasSubstr("next       lockbench run " + best), HasSubstr("hazards --explain")));
  EXPECT_THAT(to_text(answer, {}), Not(HasSubstr("hazards --explain")));
  const auto document = nlohmann::json::parse(to_json(answer, {{"clients", std::int64_t{200}}}));
  EXPECT_EQ(document.at("qualify").at(0).at("strategy"), best);
  EXPECT_EQ(document.at("qualify").size() + document.at("ruled_out").size(),
            all_strategies().size());
  EXPECT_EQ(document.at("requirements").at("clients"), 200);
  EXPECT_FALSE(document.at("settings").empty());
}

TEST(Text, IsWhatTheTerminalCanShow) {
  Requirements requirements = surviving({"crash", "pause"});
  requirements.work_p99 = std::chrono::milliseconds(80);
  requirements.clients = 200;
  const Answer answer = ask(requirements);
  EXPECT_THAT(to_text(answer, {}, true), AllOf(HasSubstr("  but\n"), HasSubstr("≥")));
  const results::TextStyle narrow{.ascii = true, .width = 60, .remedy = "--this shows them"};
  const std::string text = to_text(answer, narrow, true);
  EXPECT_THAT(text, AllOf(HasSubstr("left out for lack of room (--this shows them): but"),
                          Not(HasSubstr("  but\n"))));
  EXPECT_TRUE(std::all_of(text.begin(), text.end(),
                          [](char c) { return static_cast<unsigned char>(c) < 0x80U; }));
}

TEST(Text, SaysWhatWouldHelpWhereNothingQualifies) {
  World world;
  world.add(made_up("x\x1b|y", {}, {{"failover", HazardOutcome::double_grant}}));
  const Answer answer = world.choose(surviving({"failover"}));
  EXPECT_THAT(
      to_text(answer, {}),
      AllOf(HasSubstr("none of 1 strategies qualifies"), HasSubstr("without --survive failover: x"),
            HasSubstr("; instead: work that may run twice"), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace lockbench::choose

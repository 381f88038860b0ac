#include "tests/unit/choose/fixtures.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Requirements objective(const char* slo, Requirements requirements = {}) {
  requirements.slos = {results::parse_threshold(slo).value()};
  return requirements;
}

TEST(Slo, WhatMissesItIsOutAndWhatNobodyMeasuredIsSaid) {
  World world;
  for (const char* name : {"quick", "slow", "unknown"}) world.add(made_up(name));
  world.file().runs = {measured("quick", 1e-3), measured("slow", 1)};
  const Answer answer = world.choose(objective("acquire.p99<20ms"));
  EXPECT_THAT(names(answer.ranked), ElementsAre("quick", "unknown"));
  EXPECT_THAT(candidate(answer, "slow").against.at(0).text, HasSubstr("acquire.p99 is 2 s"));
  EXPECT_THAT(candidate(answer, "slow").against.at(0).evidence, HasSubstr("mine.json"));
  EXPECT_EQ(candidate(answer, "unknown").conditions.at(0).text, "not measured");
}

struct Kind {
  bool fair = false;
  std::int64_t clients = 8;
};

/// What becomes of a strategy that took 2 ms at its p99 with so many clients and no work.
Candidate judged(const Requirements& requirements, Kind kind = {}) {
  // Candidates refer to the descriptors: each stays until the next.
  static std::optional<World> world;
  world.emplace();
  world->add(made_up("x", {.fair = kind.fair}));
  world->file() = under(kind.clients, {measured("x", 1e-3)});
  return candidate(world->choose(requirements), "x");
}

TEST(Slo, ThatWasMeasuredUnderAnotherLoadIsACondition) {
  const Candidate same = judged(objective("acquire.p99<20ms", {.clients = 8}));
  EXPECT_THAT(same.in_favour, ElementsAre(Field(&Reason::text, "acquire.p99 is 2 ms")));
  EXPECT_THAT(same.conditions, IsEmpty());
  const Candidate other = judged(objective("acquire.p99<20ms", {.work_p99 = 5ms, .clients = 200}));
  EXPECT_THAT(other.in_favour, IsEmpty());
  EXPECT_THAT(
      other.conditions,
      ElementsAre(Field(&Reason::text, AllOf(HasSubstr("8 clients at a lock instead of 200"),
                                             HasSubstr("no work instead of 5 ms")))));
  EXPECT_THAT(judged(objective("acquire.p99<20ms", {.rate = 9})).conditions,
              ElementsAre(Field(&Reason::text, HasSubstr("ask again at once"))));
}

TEST(Slo, ThatOneClientKeepsAloneIsAConditionUnlessNobodyElseIsThere) {
  const Kind alone{.clients = 1};
  for (const Requirements& nobody_named : {Requirements{}, Requirements{.rate = 9}}) {
    const Candidate kept = judged(objective("acquire.p99<20ms", nobody_named), alone);
    EXPECT_THAT(kept.in_favour, IsEmpty());
    EXPECT_THAT(kept.conditions, ElementsAre(Field(&Reason::text, HasSubstr("client alone"))));
  }
  EXPECT_THAT(judged(objective("acquire.p99<20ms", {.clients = 1}), alone).conditions, IsEmpty());
  EXPECT_THAT(judged(objective("acquire.p99<20ms")).conditions, IsEmpty());
  EXPECT_FALSE(judged(objective("acquire.p99<1ms"), alone).qualifies()) << "missed all the more";
}

TEST(Slo, ThatIsMissedRulesOutUnlessTheLoadWasHeavier) {
  EXPECT_FALSE(judged(objective("acquire.p99<1ms", {.clients = 8})).qualifies());
  EXPECT_FALSE(judged(objective("acquire.p99<1ms", {.clients = 200})).qualifies());
  const Candidate heavier = judged(objective("acquire.p99<1ms", {.clients = 2}));
  EXPECT_TRUE(heavier.qualifies());
  EXPECT_THAT(heavier.conditions, ElementsAre(Field(&Reason::text, HasSubstr("missed"))));
}

TEST(Slo, ThatOneLockCannotKeepRulesOutWhateverWasMeasured) {
  const Requirements crowd{.work_p50 = 100ms, .clients = 200};
  EXPECT_THAT(judged(objective("acquire.mean<20ms", crowd)).against,
              ElementsAre(Field(&Reason::text, AllOf(HasSubstr("19.9 s at the mean"),
                                                     HasSubstr("at least 200 locks")))));
  EXPECT_TRUE(judged(objective("acquire.mean<20s", crowd)).qualifies());
  EXPECT_FALSE(judged(objective("sections_per_second>11", crowd)).qualifies());
  EXPECT_TRUE(judged(objective("sections_per_second>9", crowd)).qualifies());
}

TEST(Slo, ThatLeavesAFewOutRulesOutOnlyLocksThatAreFair) {
  const Requirements crowd{.work_p50 = 100ms, .clients = 200};
  for (const char* slo : {"acquire.p50<20ms", "acquire.p99<20ms", "acquire.p999<20ms"}) {
    EXPECT_FALSE(judged(objective(slo, crowd), {.fair = true}).qualifies()) << slo;
    const Candidate unfair = judged(objective(slo, crowd));
    EXPECT_TRUE(unfair.qualifies()) << slo;
    EXPECT_THAT(unfair.conditions,
                Contains(Field(&Reason::text, HasSubstr("some clients starve"))));
  }
}

TEST(Slo, ThatNoWaitKeepsNeedsNoClientsToBeMissed) {
  EXPECT_THAT(judged(objective("acquire.mean<-1ms", {.work_p50 = 1ms})).against,
              ElementsAre(Field(&Reason::text, Not(HasSubstr("locks")))));
  EXPECT_THAT(judged(objective("acquire.mean<-1ms", {.work_p50 = 1ms, .clients = 8})).against,
              ElementsAre(Field(&Reason::text, HasSubstr("at least 8 locks"))));
}

TEST(Demand, BeyondOneLockIsACondition) {
  const Requirements much{.work_p50 = 100ms, .rate = 25};
  EXPECT_THAT(judged(much).conditions,
              ElementsAre(Field(&Reason::text, HasSubstr("only with 3 locks"))));
  EXPECT_FALSE(judged(objective("acquire.mean<1h", much)).qualifies());
  EXPECT_THAT(judged({.work_p50 = 100ms, .rate = 5}).conditions, IsEmpty());
}

TEST(Slo, IsNotJudgedByInvalidRuns) {
  World world;
  for (const char* name : {"half", "never"}) world.add(made_up(name));
  world.file().runs = {measured("half", 9), measured("half", 1e-3), measured("never", 9)};
  world.file().runs[0].generator.valid = false;
  world.file().runs[2].generator.valid = false;
  const Answer answer = world.choose(objective("acquire.p99<20ms"));
  EXPECT_THAT(candidate(answer, "half").in_favour,
              ElementsAre(Field(&Reason::text, "acquire.p99 is 2 ms")));
  EXPECT_THAT(candidate(answer, "half").conditions,
              ElementsAre(Field(&Reason::text, HasSubstr("1 of 2 runs are invalid"))));
  EXPECT_THAT(candidate(answer, "never").conditions,
              ElementsAre(Field(&Reason::text, HasSubstr("all its runs are invalid"))));
  EXPECT_TRUE(candidate(answer, "never").qualifies());
}

}  // namespace
}  // namespace lockbench::choose

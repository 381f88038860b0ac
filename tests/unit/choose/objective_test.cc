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
using testing::StartsWith;

Requirements objective(const char* slo, Requirements requirements = {}) {
  requirements.slos = {results::parse_threshold(slo).value()};
  return requirements;
}

TEST(Slo, WhatMissesItIsOutAndWhatNobodyMeasuredIsSaid) {
  World world{"quick", "slow", "unheard", "unknown"};
  world.file().runs = {measured("quick", 1e-3), measured("slow", 1)};
  const Answer answer = world.choose(objective("acquire.p99<20ms", {.clients = 1}));
  EXPECT_THAT(names(answer.ranked), ElementsAre("quick", "unheard", "unknown"));
  const Reason& missed = candidate(answer, "slow").against.at(0);
  EXPECT_EQ(missed.text, "it misses that") << "one line for all that miss it";
  EXPECT_EQ(missed.detail, "acquire.p99 is 2 s");
  EXPECT_THAT(missed.evidence, HasSubstr("mine.json"));
  EXPECT_EQ(candidate(answer, "unknown").conditions.at(0).text, "not measured");
}

TEST(Slo, IsJudgedByTheWorstRunWhichIsSaid) {
  World world{"x"};
  world.file().runs = {measured("x", 1e-3), measured("x", 3e-3)};
  const Answer answer = world.choose(objective("acquire.p99<20ms", {.clients = 1}));
  EXPECT_EQ(candidate(answer, "x").in_favour.at(0).text,
            "acquire.p99 is 6 ms in the worst of 2 runs");
}

TEST(Slo, OfThroughputIsAskedForAndRulesOutOnlyWhatServedLess) {
  World world{"served", "lagged"};
  world.file() = under(32, {measured("served", 1e-3), measured("lagged", 1e-3)});
  world.file().workload["rate"] = 770.0;
  for (results::Run& run : world.file().runs) run.sections_per_second = 690;
  world.file().runs[0].outcomes = {.acquired = 690};
  world.file().runs[1].outcomes = {.acquired = 690, .timed_out = 100};
  const Requirements wanted =
      objective("sections_per_second>700", {.work_p50 = 1ms, .clients = 32});
  const Answer answer = world.choose(wanted);
  EXPECT_THAT(names(answer.ranked), ElementsAre("served"));
  EXPECT_THAT(candidate(answer, "served").conditions.at(0).text,
              AllOf(HasSubstr("not shown"), HasSubstr("no more was asked for")));
  EXPECT_THAT(answer.check, HasSubstr("--rate 770 ")) << "a tenth more, to show it";
  EXPECT_THAT(answer.assumption, HasSubstr("--rate 770 "));
}

TEST(Slo, ThatWaitsWereCutOffBelowIsACondition) {
  World world{"cut", "missed"};
  world.file().runs = {measured("cut", 1e-3), measured("missed", 1e-3), measured("missed", 1)};
  auto& runs = world.file().runs;
  runs[0].acquire.at_least = runs[1].acquire.at_least = {"p99"};
  const Answer answer = world.choose(objective("acquire.p99<20ms", {.clients = 1}));
  EXPECT_THAT(names(answer.ranked), ElementsAre("cut"));
  EXPECT_THAT(
      candidate(answer, "cut").conditions,
      ElementsAre(Field(&Reason::text, StartsWith("not shown: acquire.p99 is at least 2 ms"))));
  EXPECT_THAT(answer.not_decided, StartsWith("--slo 'acquire.p99<20ms': not shown"));
}

TEST(Slo, IsDecidedOnlyUnderThatLoad) {
  World world{"x"};
  world.file() = under(32, {measured("x", 1e-3)});
  const auto not_decided = [&](Requirements requirements) {
    requirements.work_p50 = 1ms;
    return world.choose(objective("acquire.p99<20ms", std::move(requirements))).not_decided;
  };
  EXPECT_EQ(not_decided({.clients = 32, .rate = 700}), "") << "it is kept";
  EXPECT_EQ(not_decided({.clients = 320, .rate = 800}), "") << "nothing was measured";
  world.file().runs[0].acquire.at_least = {"p99"};
  EXPECT_NE(not_decided({.clients = 32, .rate = 700}), "");
  EXPECT_EQ(not_decided({.clients = 320, .rate = 800}), "");
}

TEST(Slo, ThatWasMissedUnderAnotherLoadIsTheFirstLine) {
  World world{"a-slow", "quick"};
  world.file() = under(32, {measured("a-slow", 1), measured("quick", 1e-3)});
  const Requirements other{.work_p50 = 1ms, .clients = 320, .rate = 300};
  const auto answer = [&] { return world.choose(objective("acquire.p99<20ms", other)); };
  EXPECT_THAT(names(answer().ranked), ElementsAre("quick", "a-slow"));
  EXPECT_THAT(to_text(answer(), {}), StartsWith("Use quick"));
  world.file().runs[1] = measured("quick", 0.5);
  EXPECT_THAT(to_text(answer(), {}),
              StartsWith("No lock is shown to keep --slo 'acquire.p99<20ms'; first to measure: "));
  EXPECT_THAT(answer().not_decided, HasSubstr("missed, acquire.p99 is 1 s"));
}

TEST(Slo, ThatAHeavierLoadKeepsIsKept) {
  World world{"x"};
  world.file() = under(32, {measured("x", 1e-3)});
  const Requirements lighter{.work_p50 = 1ms, .clients = 32, .rate = 300};
  EXPECT_THAT(candidate(world.choose(objective("acquire.p99<20ms", lighter)), "x").in_favour,
              Contains(Field(&Reason::text, "acquire.p99 is 2 ms")));
}

/// The verdict on a strategy with a p99 of 2 ms, measured with `clients` clients and no work.
Candidate judged(const Requirements& requirements, std::int64_t clients = 8) {
  // Candidates refer to the descriptors, so keep these until the next call.
  static std::optional<World> world;
  world.emplace();
  world->add(made_up("x"));
  world->file() = under(clients, {measured("x", 1e-3)});
  return candidate(world->choose(requirements), "x");
}

TEST(Slo, ThatWasNotMeasuredOrUnderAnotherLoadIsACondition) {
  EXPECT_THAT(judged(objective("handoff.p50<1ms", {.clients = 8})).conditions,
              ElementsAre(Field(&Reason::text, "not shown: handoff.p50 was not measured")));
  const Candidate same = judged(objective("acquire.p99<20ms", {.clients = 8}));
  EXPECT_THAT(same.in_favour, ElementsAre(Field(&Reason::text, "acquire.p99 is 2 ms")));
  EXPECT_THAT(same.conditions, IsEmpty());
  const Candidate other = judged(objective("acquire.p99<20ms", {.work_p99 = 5ms, .clients = 200}));
  EXPECT_THAT(other.in_favour, IsEmpty());
  EXPECT_THAT(
      other.conditions,
      ElementsAre(Field(&Reason::text, AllOf(HasSubstr("8 clients at a lock instead of 200"),
                                             HasSubstr("1 ms of work instead of 5 ms")))));
  EXPECT_THAT(judged(objective("acquire.p99<20ms", {.rate = 9})).conditions,
              ElementsAre(Field(&Reason::text, HasSubstr("70 % busy instead of"))));
}

TEST(Slo, ThatOneClientKeepsAloneSaysNothingOfContention) {
  for (const Requirements& several : {Requirements{}, Requirements{.clients = 2}}) {
    const Candidate kept = judged(objective("acquire.p99<20ms", several), 1);
    EXPECT_THAT(kept.in_favour, IsEmpty());
    EXPECT_THAT(kept.conditions, ElementsAre(Field(&Reason::text, "not measured")));
  }
  EXPECT_THAT(judged(objective("acquire.p99<20ms", {.clients = 1}), 1).conditions, IsEmpty());
  EXPECT_FALSE(judged(objective("acquire.p99<1ms", {.clients = 1}), 1).qualifies());
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
  EXPECT_FALSE(judged(objective("sections_per_second>11", crowd)).qualifies());
  EXPECT_TRUE(judged(objective("sections_per_second>9", crowd)).qualifies());
  const Requirements spread{.work_p50 = 100ms, .clients = 200, .keys = 5};
  EXPECT_TRUE(judged(objective("sections_per_second>11", spread)).qualifies());
  const Requirements few{.work_p50 = 10ms, .clients = 2, .keys = 50};
  EXPECT_FALSE(judged(objective("sections_per_second>200", few)).qualifies());
}

TEST(Demand, BeyondItsClientsRulesOut) {
  const Requirements few{.work_p50 = 10ms, .clients = 2, .rate = 200, .keys = 50};
  EXPECT_THAT(judged(few).against,
              ElementsAre(Field(&Reason::text, HasSubstr("2 clients carry at most 200"))));
  EXPECT_TRUE(judged({.work_p50 = 10ms, .clients = 2, .rate = 190, .keys = 50}).qualifies());
}

TEST(Demand, ThatNoLockKeepsIsSaidFirstWithTheKeysThatWould) {
  World world{"x"};
  world.file() = under(32, {measured("x", 1e-3)});
  const std::vector<std::pair<Requirements, const char*>> cases = {
      {{.work_p50 = 100ms, .rate = 25}, "it would be taken 250 % of the time (25/s of 100 ms)"},
      {{.work_p50 = 100ms, .rate = 25}, "4 keys would do (at most 70 %), or work of 28 ms"},
      {{.work_p50 = 100ms, .rate = 9}, "it would be taken 90 %"},
      {{.work_p50 = 100ms, .rate = 8}, ""},
      {{.work_p50 = 100ms, .rate = 25, .keys = 5}, ""},
      {{.work_p50 = 100ms, .rate = 250, .keys = 25}, "each would be taken 100 %"},
      {{.work_p50 = 100ms, .rate = 25, .shared = true}, ""},
      {{.work_p50 = 10ms, .rate = 50, .rtt = 10ms}, "(50/s of 20 ms)"},
      {{.work_p50 = 1ms, .rate = 50, .rtt = 30ms}, "or a nearer server"},
  };
  for (const auto& [wanted, why] : cases) {
    const Answer answer = world.choose(wanted);
    if (*why == 0) {
      EXPECT_EQ(answer.too_busy, "");
      continue;
    }
    EXPECT_THAT(answer.too_busy, HasSubstr(why));
    EXPECT_THAT(to_text(answer, {}), testing::StartsWith("No lock keeps "));
    EXPECT_THAT(names(answer.ranked), ElementsAre("x")) << "for as many keys as it takes";
  }
  const Answer skewed = world.choose({.work_p50 = 1ms, .rate = 2000, .keys = 2, .key_skew = 1});
  EXPECT_THAT(skewed.too_busy, HasSubstr("the busiest would be taken 133 %"));
  EXPECT_THAT(skewed.check, HasSubstr("--keys 12 "));
}

TEST(Demand, ThatWasNotServedRulesOutUnlessTheLoadWasHeavier) {
  World world{"keeps up", "late", "disturbed"};
  world.file() =
      under(8, {measured("keeps up", 1e-3), measured("late", 1), measured("disturbed", 1)});
  for (results::Run& run : world.file().runs) run.outcomes = {.acquired = 90, .abandoned = 10};
  world.file().runs[0].outcomes = {.acquired = 96, .abandoned = 4};
  // It was late because of its own load, which does not make a run invalid.
  world.file().runs[1].generator = {
      .valid = false, .reasons = {std::string(results::kNotTheLoadAskedFor) + ": late"}};
  world.file().runs[2].generator = {.valid = false, .reasons = {"steal"}};
  const auto requirements = [](double rate) {
    return Requirements{.work_p50 = 1ms, .clients = 8, .rate = rate};
  };
  const Answer answer = world.choose(requirements(700));
  EXPECT_TRUE(candidate(answer, "keeps up").qualifies());
  EXPECT_THAT(candidate(answer, "late").against,
              ElementsAre(Field(&Reason::detail, "it served 90 % of the sections")));
  EXPECT_TRUE(candidate(answer, "disturbed").qualifies());
  EXPECT_TRUE(candidate(world.choose(requirements(200)), "late").qualifies());
}

TEST(Slo, IsNotJudgedByInvalidRuns) {
  World world{"half", "never"};
  world.file().runs = {measured("half", 9), measured("half", 1e-3), measured("never", 9)};
  world.file().runs[0].generator.valid = false;
  world.file().runs[2].generator.valid = false;
  const Answer answer = world.choose(objective("acquire.p99<20ms", {.clients = 1}));
  EXPECT_THAT(candidate(answer, "half").in_favour,
              ElementsAre(Field(&Reason::text, "acquire.p99 is 2 ms; invalid runs beside: 1")));
  EXPECT_THAT(candidate(answer, "never").conditions,
              ElementsAre(Field(&Reason::text, HasSubstr("all its runs are invalid"))));
  EXPECT_TRUE(candidate(answer, "never").qualifies());
}

}  // namespace
}  // namespace lockbench::choose

#include <gmock/gmock.h>

#include <limits>

#include "results/tables/show.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

auto says(Tone tone, const std::string& text) {
  return AllOf(Field(&Sentence::tone, tone), Field(&Sentence::text, HasSubstr(text)));
}

TEST(Advice, SaysFirstWhatBrokeInAnyRepetition) {
  Result result = minimal_result();
  result.runs = {simple_run("good"), simple_run("bad"), simple_run("bad")};
  for (std::size_t i : {1U, 2U}) {
    result.runs[i].audit = {.lost_updates = 6, .overlaps = 3, .verdict = Verdict::violated};
  }
  EXPECT_THAT(advice(result, {}),
              ElementsAre(says(Tone::bad,
                               "violated exclusion: bad: lost updates 12, overlaps of "
                               "two holders 6")));
  result.runs.resize(1);
  EXPECT_THAT(advice(result, {}), IsEmpty());
}

TEST(Advice, TellsWhatAWatchFoundAndWhatToDo) {
  Result result = minimal_result();
  result.observed.emplace();
  result.findings = {{.kind = "expired",
                      .store = "redis",
                      .family = "order",
                      .evidence = "1 of 11",
                      .advice = "renew the lock"},
                     {.kind = "hog", .store = "redis", .evidence = "one client"}};
  result.sources = {{.store = "redis", .endpoint = "host:1", .unseen = {"refused attempts"}}};
  EXPECT_THAT(advice(result, {}),
              ElementsAre(says(Tone::bad, "expired: redis order: 1 of 11: renew the lock"),
                          says(Tone::doubtful, "hog: redis: one client"),
                          says(Tone::plain, "redis host:1: cannot see refused attempts")));
}

TEST(Notes, SayWhenAFaultStruckAndWhatItDid) {
  struct Case {
    FaultMark mark;
    Tone tone;
    std::string said;
  };
  const std::vector<Case> cases = {
      {{"store-kill", 2.5, 3.5, 0.12, 0.014},
       Tone::plain,
       "store-kill at 2.5 s, healed at 3.5 s: throughput fell to 1 % and recovered 120 ms after "
       "healing"},
      {{"node-kill", 1, std::nullopt, 0.05, 0.6},
       Tone::plain,
       "node-kill at 1 s: throughput fell to 60 % and recovered 50 ms after the fault"},
      {{"failover", 1, 1.5, std::nullopt, 0},
       Tone::bad,
       "failover at 1 s, healed at 1.5 s: throughput fell to 0 % and did not recover before the "
       "run ended"},
      {{"delay:5ms", 0, std::nullopt, std::nullopt, std::numeric_limits<double>::quiet_NaN()},
       Tone::plain,
       "delay:5ms at 0 s: too few grants before it to compare with"}};
  Result result = minimal_result();
  result.runs = {simple_run("redis-set-nx")};
  for (const auto& [mark, tone, said] : cases) {
    result.runs[0].faults = {mark};
    EXPECT_THAT(notes(result), ElementsAre(says(tone, "fault: redis-set-nx: " + said)));
  }
}

TEST(Notes, TellOfALockThatNobodyGot) {
  Result result;
  result.runs = {results::Run{.strategy = "redis-wait"}, results::Run{.strategy = "redis-set-nx"}};
  result.runs[0].outcomes = {.refused = 9, .abandoned = 7};
  result.runs[0].fairness.per_client.resize(7);
  result.runs[1].outcomes = {.acquired = 1, .refused = 9};
  EXPECT_THAT(notes(result), ElementsAre(says(Tone::doubtful,
                                              "nothing granted: redis-wait: 9 refused, 0 timed "
                                              "out, 0 failed, 0 unknown, 7 abandoned")));
}

}  // namespace
}  // namespace lockbench::results

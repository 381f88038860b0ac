#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "results/tables/runs.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::ElementsAre;

std::vector<std::string> notes_on(const FaultMark& mark) {
  Result result = minimal_result();
  result.runs = {simple_run("redis-set-nx")};
  result.runs[0].faults = {mark};
  return notes(result);
}

TEST(FaultNotes, SayWhenAndWhatItDid) {
  EXPECT_THAT(notes_on({"store-kill", 2.5, 3.5, 0.12, 0.014}),
              ElementsAre("fault: redis-set-nx: store-kill at 2.5 s, healed at 3.5 s: throughput "
                          "fell to 1 % and recovered 120 ms after healing"));
}

TEST(FaultNotes, TellAFaultThatWasNotHealed) {
  EXPECT_THAT(notes_on({"node-kill", 1, std::nullopt, 0.05, 0.6}),
              ElementsAre("fault: redis-set-nx: node-kill at 1 s: throughput fell to 60 % and "
                          "recovered 50 ms after the fault"));
}

TEST(FaultNotes, TellWhatDidNotComeBack) {
  EXPECT_THAT(notes_on({"failover", 1, 1.5, std::nullopt, 0}),
              ElementsAre("fault: redis-set-nx: failover at 1 s, healed at 1.5 s: throughput fell "
                          "to 0 % and did not recover before the run ended"));
}

TEST(Notes, TellOfALockThatNobodyGot) {
  Result result;
  result.runs = {results::Run{.strategy = "redis-wait"}, results::Run{.strategy = "redis-set-nx"}};
  result.runs[0].outcomes = {.refused = 9, .abandoned = 7};
  result.runs[0].fairness.per_client.resize(7);
  result.runs[1].outcomes = {.acquired = 1, .refused = 9};
  EXPECT_THAT(notes(result),
              ElementsAre("nothing granted: redis-wait: 9 refused, 0 timed out, 0 failed, 0 "
                          "unknown, 7 abandoned"));
}

TEST(FaultNotes, TellThatThereWasNothingToCompareWith) {
  EXPECT_THAT(notes_on({"delay:5ms", 0, std::nullopt, std::nullopt,
                        std::numeric_limits<double>::quiet_NaN()}),
              ElementsAre("fault: redis-set-nx: delay:5ms at 0 s: too few grants before it "
                          "to compare with"));
}

}  // namespace
}  // namespace lockbench::results

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "results/tables/runs.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::ElementsAre;

TEST(FaultNotes, SayWhenAndWhatItDid) {
  const std::vector<std::pair<FaultMark, std::string>> cases = {
      {{"store-kill", 2.5, 3.5, 0.12, 0.014},
       "store-kill at 2.5 s, healed at 3.5 s: throughput fell to 1 % and recovered 120 ms after "
       "healing"},
      {{"node-kill", 1, std::nullopt, 0.05, 0.6},
       "node-kill at 1 s: throughput fell to 60 % and recovered 50 ms after the fault"},
      {{"failover", 1, 1.5, std::nullopt, 0},
       "failover at 1 s, healed at 1.5 s: throughput fell to 0 % and did not recover before the "
       "run ended"},
      {{"delay:5ms", 0, std::nullopt, std::nullopt, std::numeric_limits<double>::quiet_NaN()},
       "delay:5ms at 0 s: too few grants before it to compare with"}};
  Result result = minimal_result();
  result.runs = {simple_run("redis-set-nx")};
  for (const auto& [mark, said] : cases) {
    result.runs[0].faults = {mark};
    EXPECT_THAT(notes(result), ElementsAre("fault: redis-set-nx: " + said));
  }
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

}  // namespace
}  // namespace lockbench::results

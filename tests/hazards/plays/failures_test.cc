#include <gtest/gtest.h>

#include "hazards/verdicts.h"
#include "tests/hazards/support/fixtures.h"
#include "tests/support/test_names.h"

// A play that gets no answer from the store breaks off without a verdict.

namespace lockbench::hazards::test {
namespace {

struct Failing {
  std::string_view scenario, mutant, reason;

  friend std::ostream& operator<<(std::ostream& out, const Failing& failing) {
    return out << failing.scenario << " / " << failing.mutant;
  }
};

class Failures : public testing::TestWithParam<Failing> {};

TEST_P(Failures, OfTheStoreAreNoVerdict) {
  const auto& [name, mutant, reason] = GetParam();
  const Cell cell = undisturbed(name, mutant);
  EXPECT_FALSE(cell.played()) << description_of(cell);
  EXPECT_TRUE(cell.failed) << description_of(cell);
  EXPECT_NE(cell.reason.find(reason), std::string::npos) << description_of(cell);
}

constexpr std::string_view kNoAnswer = "gave an acquisition no answer";
constexpr std::string_view kNoRelease = "did not reach the store";

INSTANTIATE_TEST_SUITE_P(
    , Failures,
    testing::Values(Failing{"contention", "test-silent", kNoAnswer},
                    Failing{"reentry", "test-silent", kNoAnswer},
                    Failing{"reentry", "test-silent-confused", kNoAnswer},
                    Failing{"getset-rewrite", "test-silent-getset", kNoAnswer},
                    Failing{"redlock-slow-nodes", "test-silent-redlock", kNoAnswer},
                    Failing{"session-expiry", "test-silent-etcd", kNoAnswer},
                    Failing{"transaction-timeout-statement", "test-cut-off", kNoAnswer},
                    Failing{"redlock-split-vote", "test-silent-refusal", kNoAnswer},
                    Failing{"lost-answer-acquire", "test-silent-for-good", kNoAnswer},
                    Failing{"late-release", "test-unheard-release", kNoRelease},
                    Failing{"holder-clock-behind", "test-unheard-release", kNoRelease},
                    Failing{"release-race", "test-unheard-release", kNoRelease},
                    Failing{"crash-waiting", "test-unheard-release", kNoRelease},
                    Failing{"release-without-holding", "test-unheard-repetition", kNoRelease},
                    Failing{"lost-answer-release", "test-unheard-repetition", kNoRelease}),
    [](const auto& tested) {
      return lockbench::test::test_name_of(std::string(tested.param.scenario) + "_" +
                                           std::string(tested.param.mutant));
    });

/// A grant before the fault is not an effect of the fault.
TEST(Verdicts, OnAReturnAreForGrantsThatCameAfterIt) {
  const Scenario early{.name = "early", .question = "?", .play = [](Play& play) {
                         const Grant grant = play.client("early").must_acquire();
                         return verdict_of_return(play, grant, grant.answered_at + Duration(1));
                       }};
  const Cell cell = undisturbed(early, strategy("redis-set-nx-lua"));
  EXPECT_TRUE(cell.failed) << description_of(cell);
  EXPECT_NE(cell.reason.find("before it could become free"), std::string::npos) << cell.reason;
}

}  // namespace
}  // namespace lockbench::hazards::test

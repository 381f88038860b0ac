#include "tests/unit/loadgen/summary_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Verdict;

class AuditSummaryTest : public SummaryTest {
 protected:
  AuditSummaryTest() {
    Counts before;
    before[Count::contended_grants] = 1000;
    run_.recorder.client(0).add(Phase::unmeasured, before);
  }
};

TEST_F(AuditSummaryTest, FailuresOfTheResourceAreTheAuditsBusinessWheneverTheyCame) {
  add(Count::resource_failures, 2);
  Counts before;
  before[Count::resource_failures] = 3;
  run_.recorder.client(0).add(Phase::unmeasured, before);
  EXPECT_EQ(summary().audit.resource_failures, 5U);
}

TEST_F(AuditSummaryTest, WithoutAnAcceptedWriteNothingIsAudited) {
  grant(1ms);
  EXPECT_EQ(summary().audit.verdict, Verdict::unaudited);
  update();
  EXPECT_EQ(summary().audit.verdict, Verdict::exclusive);
}

TEST_F(AuditSummaryTest, AnOverlapIsAViolation) {
  overlap();
  const results::Audit audit = summary().audit;
  EXPECT_EQ(audit.overlaps, 1U);
  EXPECT_DOUBLE_EQ(audit.overlap_seconds, 3e-3);
  EXPECT_EQ(audit.verdict, Verdict::violated);
}

TEST_F(AuditSummaryTest, ALostUpdateIsAViolation) {
  lose_an_update();
  const results::Audit audit = summary().audit;
  EXPECT_EQ(audit.increments, 2U);
  EXPECT_EQ(audit.counter, 1U);
  EXPECT_EQ(audit.lost_updates, 1U);
  EXPECT_EQ(audit.lost_updates_max, 1U);
  EXPECT_EQ(audit.verdict, Verdict::violated);
}

TEST_F(AuditSummaryTest, AFenceRegressionIsAViolation) {
  regress();
  EXPECT_EQ(summary().audit.fence_regressions, 1U);
  EXPECT_EQ(summary().audit.verdict, Verdict::violated);
}

TEST_F(AuditSummaryTest, AControlThatPromisesNothingIsUnprotectedOnlyIfItFailed) {
  strategy_.traits.promises_exclusion = false;
  update();
  EXPECT_EQ(summary().audit.verdict, Verdict::exclusive);
  overlap();
  EXPECT_EQ(summary().audit.verdict, Verdict::unprotected);
}

TEST_F(SummaryTest, ExclusionIsUntestedWithoutContention) {
  update();
  EXPECT_EQ(summary().audit.verdict, Verdict::untested);
  EXPECT_EQ(summary().audit.violations_per_million, std::nullopt);
  add(Count::contended_grants, 999);
  EXPECT_EQ(summary().audit.verdict, Verdict::untested);
  add(Count::contended_grants, 1);
  EXPECT_EQ(summary().audit.verdict, Verdict::exclusive);
  EXPECT_EQ(summary().audit.contended_grants, 1000U);
  EXPECT_NEAR(summary().audit.violations_per_million.value_or(0), 2996, 1);
  overlap();
  EXPECT_NEAR(summary().audit.violations_per_million.value_or(0), 4744, 30);
}

}  // namespace
}  // namespace lockbench::loadgen

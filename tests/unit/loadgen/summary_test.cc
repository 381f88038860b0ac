#include <gtest/gtest.h>

#include <cmath>

#include "loadgen/run/live_run.h"
#include "tests/support/run_shared.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using results::Verdict;

/// A run with given events, to be summarized.
class SummaryTest : public testing::Test {
 protected:
  Recorder::Histograms& measured() { return run_.recorder.histograms(Phase::measured); }

  void add(Count what, std::uint64_t value, int client = 0, Phase phase = Phase::measured) {
    under_test_.add(what, value, phase, client);
  }
  void grant(Duration waited, Phase phase = Phase::measured) { under_test_.grant(waited, phase); }

  /// Two clients are inside at once.
  void overlap() {
    run_.audit.enter(0, 0, Mode::exclusive, {}, {}, audit_start_ + 1ms);
    run_.audit.enter(0, 1, Mode::exclusive, {}, {}, audit_start_ + 2ms);
    run_.audit.leave(0, Mode::exclusive, audit_start_ + 5ms);
    run_.audit.leave(0, Mode::exclusive, audit_start_ + 6ms);
  }

  /// One of two increments is lost.
  void lose_an_update() {
    const auto session = run_.counter->open(*env_);
    const auto seen = session->read(0, {});
    ASSERT_TRUE(seen);
    session->write(0, *seen, {});
    session->write(0, *seen, {});
  }

  void update() {
    const auto session = run_.counter->open(*env_);
    session->write(0, *session->read(0, {}), {});
  }

  results::Run summary(Duration length = 2s) const {
    results::Run result;
    summarise(run_, length, result);
    return result;
  }

  Descriptor strategy_{.name = "tested"};
  test::RunUnderTest under_test_{strategy_, 2, 0, make_memory_counter(1)};
  RunShared& run_ = under_test_.shared();
  std::unique_ptr<Env> env_ = make_system_env(1);
  TimePoint audit_start_ = env_->now();
};

TEST_F(SummaryTest, ARunInWhichNothingHappened) {
  const results::Run run = summary(0s);
  EXPECT_EQ(run.sections_per_second, 0);
  EXPECT_EQ(run.commands_per_section, 0);
  EXPECT_EQ(run.attempts_per_grant, 0);
  EXPECT_EQ(run.fairness.per_client, (std::vector<std::uint64_t>{0, 0}));
  EXPECT_EQ(run.audit.verdict, Verdict::unaudited);
  EXPECT_FALSE(run.quorum || run.replication);
  EXPECT_TRUE(run.errors.empty());
}

TEST_F(SummaryTest, FiguresPerSection) {
  for (int i = 0; i < 4; ++i) grant(10ms);
  add(Count::commands, 10);
  add(Count::attempts, 9);
  add(Count::granted_attempts, 6);
  add(Count::round_trip_ns, 8'000);
  add(Count::backoff_ns, 4'000'000);
  add(Count::notified_ns, 2'000'000'000);
  EXPECT_EQ(summary().herd_factor, std::nullopt) << "nobody was woken";
  add(Count::wakes, 6);
  const results::Run run = summary(2s);
  EXPECT_DOUBLE_EQ(run.herd_factor.value(), 1.5);
  EXPECT_EQ(run.sections, 4U);
  EXPECT_DOUBLE_EQ(run.duration_seconds, 2);
  EXPECT_DOUBLE_EQ(run.sections_per_second, 2);
  EXPECT_DOUBLE_EQ(run.commands_per_section, 2.5);
  EXPECT_DOUBLE_EQ(run.attempts_per_grant, 1.5);
  EXPECT_DOUBLE_EQ(run.wait.round_trip_seconds, 2e-6);
  EXPECT_DOUBLE_EQ(run.wait.backoff_seconds, 1e-3);
  EXPECT_DOUBLE_EQ(run.wait.notified_seconds, 0.5);
}

TEST_F(SummaryTest, RenewalIsThereOnlyIfSomethingWasRenewed) {
  run_.recorder.renewal(Phase::unmeasured, {.outcome = RenewalAnswer::renewed});
  EXPECT_FALSE(summary().renewal) << "the warm-up is no figure";
  for (int i = 0; i < 5; ++i) {
    run_.recorder.renewal(Phase::measured, {.outcome = RenewalAnswer::renewed,
                                            .commands = 3,
                                            .slip = 1ms,
                                            .duration = 2ms,
                                            .margin = 30ms});
  }
  run_.recorder.renewal(Phase::measured,
                        {.outcome = RenewalAnswer::failed, .commands = 2, .reason = "gone"});
  run_.recorder.renewal(Phase::measured, {.outcome = RenewalAnswer::not_owner, .commands = 3});
  EXPECT_EQ(summary().errors, std::vector<std::string>{"1 × renewal: gone"});
  const auto renewal = summary(2s).renewal;
  ASSERT_TRUE(renewal);
  EXPECT_EQ(renewal->renewals, 5U);
  EXPECT_EQ(renewal->failures, 1U);
  EXPECT_EQ(renewal->lost, 1U);
  EXPECT_DOUBLE_EQ(renewal->commands_per_second, 10) << "each node's is one";
  EXPECT_EQ(renewal->slip.count, 7U);
  EXPECT_EQ(renewal->duration.count, 7U);
  EXPECT_EQ(renewal->margin.count, 5U);
}

TEST_F(SummaryTest, OutcomesAreKeptApartAndThoseThatWereCutOffAreCensored) {
  const auto outcomes = static_cast<std::size_t>(AcquireOutcome::abandoned) + 1;
  for (std::size_t n = 1; n <= outcomes; ++n) {
    for (std::size_t i = 0; i < n; ++i) measured().values[n - 1].record(1ms * n);
  }
  const results::Run run = summary();
  EXPECT_EQ(run.outcomes.acquired, 0U) << "its grant came after the measured part";
  EXPECT_EQ(run.outcomes.timed_out, 2U);
  EXPECT_EQ(run.outcomes.refused, 3U);
  EXPECT_EQ(run.outcomes.failed, 4U);
  EXPECT_EQ(run.outcomes.unknown, 5U);
  EXPECT_EQ(run.outcomes.abandoned, 6U);
  EXPECT_EQ(run.acquire.count, 1U);
  EXPECT_EQ(run.acquire.censored.count, 8U) << "timed out and abandoned";
  EXPECT_DOUBLE_EQ(run.acquire.max, 6e-3);
  EXPECT_TRUE(run.acquire.is_at_least("max"));
}

TEST_F(SummaryTest, Fairness) {
  add(Count::sections, 3, 0);
  add(Count::sections, 1, 1);
  measured()[Timing::acquired].record(250ms);
  for (const int client : {0, 0, 0, 1}) {
    run_.audit.enter(0, client, Mode::exclusive, {}, {}, audit_start_);
    run_.audit.leave(0, Mode::exclusive, audit_start_);
  }
  const results::Fairness fairness = summary().fairness;
  EXPECT_EQ(fairness.per_client, (std::vector<std::uint64_t>{3, 1}));
  EXPECT_DOUBLE_EQ(fairness.jain, 0.8);  // (3 + 1)^2 / (2 * (9 + 1))
  EXPECT_EQ(fairness.longest_streak, 3U);
  EXPECT_DOUBLE_EQ(fairness.longest_wait_seconds, 0.25);
  EXPECT_FALSE(fairness.longest_wait_at_least);
  measured()[Timing::timed_out].record(100ms);
  EXPECT_TRUE(summary().fairness.longest_wait_at_least) << "it may have become longer";
}

TEST_F(SummaryTest, NoClientsPercentileIsAboveTheLongestWait) {
  // It lies in the lower half of its bucket.
  for (int i = 0; i < 200; ++i) {
    run_.recorder.waits().record(0, 97ms, false);
    measured()[Timing::acquired].record(97ms);
  }
  const results::Fairness fairness = summary().fairness;
  EXPECT_DOUBLE_EQ(fairness.longest_wait_seconds, 0.097);
  EXPECT_DOUBLE_EQ(fairness.by_client.value().worst_p99, 0.097);
}

TEST_F(SummaryTest, ASeriesPointIsWhatHappenedSinceTheLast) {
  run_.load_start = audit_start_;
  run_.measure_start = audit_start_ + 1s;
  SeriesSampler sampler(run_);
  grant(1ms, Phase::unmeasured);
  grant(1ms, Phase::unmeasured);
  run_.recorder.client(0).state = ClientState::waiting;
  run_.recorder.client(1).state = ClientState::holding;
  const results::SeriesPoint first = sampler.sample(audit_start_ + 1s);
  EXPECT_DOUBLE_EQ(first.t, 1);
  EXPECT_TRUE(first.warmup);
  EXPECT_EQ(first.sections, 2U);
  EXPECT_NEAR(first.acquire_p50, 1e-3, 1e-5);
  EXPECT_EQ(first.waiters, 1U);
  EXPECT_EQ(first.holders, 1U);

  grant(20ms);
  measured()[Timing::failed].record(1ms);
  measured()[Timing::unknown].record(1ms);
  measured()[Timing::timed_out].record(1ms);
  const results::SeriesPoint second = sampler.sample(audit_start_ + 2s);
  EXPECT_DOUBLE_EQ(second.t, 2);
  EXPECT_FALSE(second.warmup);
  EXPECT_EQ(second.sections, 1U);
  EXPECT_EQ(second.failed, 2U);
  EXPECT_NEAR(second.acquire_p99, 20e-3, 2e-4);
  results::SeriesPoint last = sampler.sample(audit_start_ + 3s);
  EXPECT_EQ(last.sections, 0U);
  // Sections finished after the last point are added to it.
  grant(2ms);
  measured()[Timing::failed].record(1ms);
  sampler.complete(last);
  EXPECT_EQ(last.sections, 1U);
  EXPECT_EQ(last.failed, 1U);
}

/// A quorum of two nodes.
class QuorumSummaryTest : public SummaryTest {
 protected:
  QuorumSummaryTest() {
    strategy_.backend = "redis";
    strategy_.traits.nodes = 2;
    of_quorum_.endpoints()["redis"] = {"redis://:secret@127.0.0.1:7001", "redis://127.0.0.1:7002"};
  }

  results::Quorum quorum() {
    results::Run result;
    summarise(of_quorum_.shared(), 2s, result);
    return result.quorum.value();
  }

  test::RunUnderTest of_quorum_{strategy_, 2, 2, make_memory_counter(1)};
  Recorder& recorder_ = of_quorum_.recorder();
};

TEST_F(QuorumSummaryTest, CountsTheVotesOfEachNode) {
  for (int i = 0; i < 3; ++i) recorder_.vote(Phase::measured, 0, Vote::granted, 1ms);
  recorder_.vote(Phase::measured, 0, Vote::refused, 5ms);
  recorder_.vote(Phase::measured, 1, Vote::failed, 50ms);
  recorder_.vote(Phase::unmeasured, 1, Vote::granted, 1ms);
  const results::Quorum seen = quorum();
  EXPECT_EQ(seen.nodes, 2U);
  ASSERT_EQ(seen.votes.size(), 2U);
  EXPECT_EQ(seen.votes[0].node, "127.0.0.1:7001") << "no secret";
  EXPECT_EQ(seen.votes[0].granted, 3U);
  EXPECT_EQ(seen.votes[0].refused, 1U);
  EXPECT_EQ(seen.votes[0].failed, 0U);
  EXPECT_EQ(seen.votes[1].granted, 0U);
  EXPECT_EQ(seen.votes[1].failed, 1U);
  ASSERT_EQ(seen.node_seconds.size(), 2U);
  EXPECT_EQ(seen.node_seconds[0].count, 4U);
  EXPECT_DOUBLE_EQ(seen.node_seconds[0].max, 5e-3);
  EXPECT_EQ(seen.node_seconds[1].count, 0U) << "no answer took no time";
}

TEST_F(QuorumSummaryTest, CountsRoundsAgainstGrants) {
  EXPECT_TRUE(std::isnan(quorum().rounds_per_grant)) << "nothing was granted";
  recorder_.round(Phase::measured, true, std::nullopt);
  EXPECT_TRUE(std::isnan(quorum().rounds_per_grant));
  recorder_.round(Phase::measured, false, 9s);
  recorder_.round(Phase::measured, false, 8s);
  const results::Quorum seen = quorum();
  EXPECT_DOUBLE_EQ(seen.rounds_per_grant, 1.5);
  EXPECT_EQ(seen.split_votes, 1U);
  EXPECT_EQ(seen.validity.count, 2U);
  EXPECT_DOUBLE_EQ(seen.validity.min, 8);
}

TEST_F(SummaryTest, WaitingForReplicasHasADistribution) {
  run_.recorder.replicas_waited(Phase::unmeasured, 1ms, 2, 2);
  EXPECT_FALSE(summary().replication) << "the warm-up is no figure";
  run_.recorder.replicas_waited(Phase::measured, 1ms, 2, 2);
  run_.recorder.replicas_waited(Phase::measured, 1ms, 3, 2);
  run_.recorder.replicas_waited(Phase::measured, 100ms, 1, 2);
  const auto replication = summary().replication;
  ASSERT_TRUE(replication);
  EXPECT_EQ(replication->replicas, 2U);
  EXPECT_EQ(replication->refusals, 1U);
  EXPECT_EQ(replication->wait.count, 3U);
  EXPECT_DOUBLE_EQ(replication->wait.max, 0.1);
}

class AuditSummaryTest : public SummaryTest {
 protected:
  AuditSummaryTest() {
    Counts before;
    before[Count::contended_grants] = 1000;
    run_.recorder.client(0).add(Phase::unmeasured, before);
  }
};

TEST_F(AuditSummaryTest, AnOverlapIsAViolation) {
  overlap();
  const results::Audit overlapped = summary().audit;
  EXPECT_EQ(overlapped.overlaps, 1U);
  EXPECT_DOUBLE_EQ(overlapped.overlap_seconds, 3e-3);
  EXPECT_EQ(overlapped.verdict, Verdict::violated);
}

TEST_F(AuditSummaryTest, ALostUpdateAloneIsAViolation) {
  lose_an_update();
  const results::Audit audit = summary().audit;
  EXPECT_EQ(audit.increments, 2U);
  EXPECT_EQ(audit.counter, 1U);
  EXPECT_EQ(audit.lost_updates, 1U);
  EXPECT_EQ(audit.lost_updates_max, 1U);
  EXPECT_EQ(audit.verdict, Verdict::violated);
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

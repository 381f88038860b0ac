#include <gtest/gtest.h>

#include <random>

#include "loadgen/cluster/part.h"
#include "loadgen/run/summary.h"
#include "results/file/json.h"
#include "strategies/registry.h"
#include "tests/support/run_shared.h"

namespace lockbench::loadgen::cluster {
namespace {

using namespace std::chrono_literals;
using test::RunUnderTest;

constexpr int kClientsOfRecord = 8, kRanksOfRecord = 4;

/// A run of all clients, of which this rank has its share.
class RankUnderTest : public RunUnderTest {
 public:
  explicit RankUnderTest(int rank = 0, int ranks = 1, int nodes = 0)
      : RunUnderTest(*find_strategy("none"), kClientsOfRecord, nodes, make_reported_counter(1)) {
    shared().share = {rank, ranks, kClientsOfRecord};
  }
};

Share all_clients() { return {.clients = kClientsOfRecord}; }

/// One client's wait.
struct Sample {
  int client;
  Duration waited;
  Phase phase;
  bool cut;
};

std::vector<Sample> samples() {
  std::mt19937 random(5);
  std::lognormal_distribution<double> waits(-7, 1.5);
  constexpr int kSamples = 20'000;
  std::vector<Sample> all;
  all.reserve(kSamples);
  for (int i = 0; i < kSamples; ++i) {
    all.push_back(
        {static_cast<int>(random() % kClientsOfRecord),
         std::chrono::duration_cast<Duration>(std::chrono::duration<double>(waits(random))),
         i < 1000 ? Phase::unmeasured : Phase::measured, i % 50 == 0});
  }
  return all;
}

void record(const Sample& sample, RunShared& run) {
  Recorder& recorder = run.recorder;
  auto& histograms = recorder.histograms(sample.phase);
  histograms[sample.cut ? Timing::timed_out : Timing::acquired].record(sample.waited);
  histograms[sample.cut ? Timing::service_cut : Timing::acquire_service].record(sample.waited);
  Counts counts;
  counts[sample.cut ? Count::failed_taken : Count::sections] = 1;
  counts[Count::commands] = 3;
  counts.longest_wait = sample.waited;
  recorder.client(sample.client).add(sample.phase, counts);
  if (sample.phase == Phase::measured) {
    recorder.waits().record(sample.client, sample.waited, sample.cut);
    recorder.command("SET").record(sample.waited / 2);
  }
  recorder.add(sample.phase, Count::renewals);
  if (sample.cut) recorder.failure("it took too long");
  run.used.mark(0);
}

/// What a result says, apart from numbers whose sums depend on their order.
std::string summary(const RunShared& run) {
  results::Run result;
  summarise(run, 10s, result);
  results::Result whole;
  whole.runs.push_back(result);
  return results::to_json(whole);
}

TEST(Record, RanksThatRecordedEachItsShareGiveTheSameResultAsOneProcess) {
  RankUnderTest alone, together;
  std::vector<std::unique_ptr<RankUnderTest>> ranks;
  ranks.reserve(kRanksOfRecord);
  for (int rank = 0; rank < kRanksOfRecord; ++rank) {
    ranks.push_back(std::make_unique<RankUnderTest>(rank, kRanksOfRecord));
  }
  for (const Sample& sample : samples()) {
    record(sample, alone.shared());
    for (auto& rank : ranks) {
      const Share& share = rank->shared().share;
      const int first = share.number(0), last = share.number(share.count() - 1);
      if (sample.client >= first && sample.client <= last) record(sample, rank->shared());
    }
  }
  for (auto& rank : ranks) {
    const Share& share = rank->shared().share;
    ASSERT_TRUE(absorb(record_of(rank->shared()), share, together.shared()));
  }
  EXPECT_EQ(summary(together.shared()), summary(alone.shared()));
}

TEST(Record, TheVotesOfNodesAddUp) {
  RankUnderTest one(0, 2, 3), whole(0, 1, 3);
  for (int i = 0; i < 3; ++i) one.recorder().vote(Phase::measured, 2, Vote::granted, 5ms);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(absorb(record_of(one.shared()), one.shared().share, whole.shared()));
  }
  const Recorder::Node& node = whole.recorder().histograms(Phase::measured).nodes[2];
  EXPECT_EQ(node.count(Vote::granted), 6U);
  const HistogramSnapshot taken = node.taken_by(Vote::granted).snapshot();
  EXPECT_EQ(taken.count(), 6U);
  EXPECT_GT(taken.min, 4ms);
  EXPECT_TRUE(node.taken_by(Vote::refused).empty());
}

TEST(Record, WhatTheAuditsOfRanksFoundAddsUp) {
  RankUnderTest one(0, 2), other(1, 2), whole;
  const auto overlap = [](RankUnderTest& rank) {
    Audit& audit = rank.shared().audit;
    const TimePoint now = Carrier::current().now();
    const Entry first = audit.enter(0, 0, Mode::exclusive, 7, {}, now);
    const AcquireMark mark = audit.begin_acquire(0);
    const Entry second = audit.enter(0, 1, Mode::exclusive, 6, mark, now + 1ms);
    audit.leave(0, first, now + 3ms);
    audit.leave(0, second, now + 4ms);
  };
  overlap(one);
  overlap(other);
  for (RankUnderTest* rank : {&one, &other}) {
    ASSERT_TRUE(absorb(record_of(rank->shared()), rank->shared().share, whole.shared()));
  }
  const AuditTotals totals = whole.shared().audit.totals();
  EXPECT_EQ(totals.overlaps, 2U);
  EXPECT_EQ(totals.overlap_time, 4ms);
  EXPECT_EQ(totals.fence_regressions, 2U);
  EXPECT_EQ(totals.longest_streak, 1U);
}

TEST(Record, OneThatIsDamagedIsRefusedAndAddsNothing) {
  RankUnderTest one, run;
  one.grant(1ms);
  one.recorder().failure("it took too long");
  const std::string whole = record_of(one.shared());
  for (std::size_t length = 0; length < whole.size(); length += 50) {
    EXPECT_FALSE(absorb(whole.substr(0, length), all_clients(), run.shared())) << length;
  }
  EXPECT_FALSE(absorb(whole + "x", all_clients(), run.shared()));
  EXPECT_FALSE(absorb(std::string(100'000, '\xff'), all_clients(), run.shared()));
  EXPECT_EQ(run.recorder().totals()[Count::sections], 0U);
  EXPECT_TRUE(run.recorder().failures().empty());
}

TEST(Record, KeysThatTheRunHasNotAreIgnored) {
  test::RunUnderTest other(*find_strategy("none"), kClientsOfRecord, 0, make_reported_counter(9));
  other.shared().counter->add({.key = 5, .accepted = 1});
  RankUnderTest run;
  ASSERT_TRUE(absorb(record_of(other.shared()), all_clients(), run.shared()));
  EXPECT_TRUE(run.shared().used.none());
  EXPECT_EQ(run.shared().counter->totals()->accepted, 0U);
}

TEST(Record, CountersOfRanksAddUpFromTheFirstValueThatAnyRead) {
  const auto reported = make_reported_counter(2);
  reported->add({.key = 0, .accepted = 10, .initial = 1 + 3, .highest = 20, .stored = true});
  reported->add({.key = 0, .accepted = 7, .initial = 1 + 4, .highest = 18, .stored = true});
  const auto totals = reported->totals();
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->accepted, 17U);
  EXPECT_EQ(totals->moved, 17U);
  EXPECT_EQ(totals->lost, 0U);
}

TEST(Record, AWriteThatAnotherRankOverwroteIsLost) {
  const auto reported = make_reported_counter(1);
  reported->add({.key = 0, .accepted = 10, .initial = 1, .highest = 10, .stored = true});
  reported->add({.key = 0, .accepted = 10, .initial = 1, .highest = 12, .stored = true});
  EXPECT_EQ(reported->totals()->lost, 8U);
}

}  // namespace
}  // namespace lockbench::loadgen::cluster

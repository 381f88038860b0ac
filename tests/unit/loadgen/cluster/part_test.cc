#include "loadgen/cluster/part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "loadgen/cluster/wire.h"
#include "loadgen/run/summary.h"
#include "results/file/json.h"
#include "strategies/registry.h"
#include "tests/support/run_shared.h"

namespace lockbench::loadgen::cluster {
namespace {

using namespace std::chrono_literals;
using test::RunUnderTest;
using testing::HasSubstr;

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

constexpr int kClientsOfTwo = 4;

/// What a rank of two has recorded: so many sections of each of its clients.
PartFile part_file(int rank, int sections) {
  test::RunUnderTest run(*find_strategy("none"), kClientsOfTwo, 0, make_reported_counter(1));
  run.shared().share = {rank, 2, kClientsOfTwo};
  for (int i = 0; i < 2; ++i) {
    for (int s = 0; s < sections; ++s) run.grant(1ms * (s + 1), Phase::measured, 2 * rank + i);
  }
  PartFile made;
  made.ranks = 2;
  made.order.run_id = "run";
  made.order.strategy = "none";
  made.order.workload.clients = kClientsOfTwo;
  Part& part = made.part;
  part.row.rank = static_cast<std::uint64_t>(rank);
  part.row.sections = static_cast<std::uint64_t>(2 * sections);
  made.hello.host = made.hello.boot = "host-" + std::to_string(rank);
  part.measured = 2s;
  part.complete = true;
  part.record = record_of(run.shared());
  part.series = {{.t = 1, .sections = part.row.sections}};
  return made;
}

TEST(Merge, TheFilesOfAllRanksMakeTheWholeRun) {
  const auto run = merge({part_file(1, 30), part_file(0, 10)});
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(run->sections, 80U);
  EXPECT_EQ(run->acquire.count, 80U);
  EXPECT_EQ(run->acquire.max, 0.03);
  EXPECT_THAT(run->fairness.per_client, testing::ElementsAre(10, 10, 30, 30));
  EXPECT_EQ(run->sections_per_second, 40);
  ASSERT_EQ(run->series.size(), 1U);
  EXPECT_EQ(run->series[0].sections, 80U);
  EXPECT_FALSE(run->ranks[0].lost || run->ranks[1].lost);
}

TEST(Merge, RanksThatLeftCoresOfTheirHostIdleAreNotTheBottleneck) {
  std::vector<PartFile> ranks{part_file(0, 10), part_file(1, 10)};
  for (PartFile& rank : ranks) {
    rank.hello = {.host = "host", .build = {}, .network = {}, .boot = "boot", .cores = 8};
    rank.part.generator.cpu_seconds = 6;
    rank.part.wall_seconds = 2;
  }
  const auto run = merge(ranks);
  ASSERT_TRUE(run) << run.error();
  EXPECT_DOUBLE_EQ(run->ranks[0].cpu_share, 3.0 / 8);
  EXPECT_DOUBLE_EQ(run->generator.cpu_share, 6.0 / 8);
  EXPECT_THAT(run->generator.reasons, testing::Not(testing::Contains(HasSubstr("of its CPU"))));
}

TEST(Merge, AMissingRankAndOneThatWasCutOffAreMarked) {
  PartFile cut = part_file(1, 5);
  cut.part.complete = false;
  EXPECT_TRUE(merge({part_file(0, 5), cut})->ranks[1].lost);
  const auto run = merge({part_file(0, 5)});
  EXPECT_TRUE(run->ranks[1].lost);
  EXPECT_FALSE(run->generator.valid);
  EXPECT_EQ(run->sections, 10U);
}

TEST(Merge, FilesOfDifferentRunsOrTwiceTheSameRankAreRefused) {
  PartFile other = part_file(1, 5);
  other.order.run_id = "other";
  EXPECT_THAT(merge({part_file(0, 5), other}).error(), HasSubstr("different runs"));
  EXPECT_THAT(merge({part_file(0, 5), part_file(0, 5)}).error(), HasSubstr("rank 0"));
  EXPECT_FALSE(merge({}));
}

TEST(Merge, ARankWhoseRecordIsDamagedIsLeftOut) {
  PartFile wrong = part_file(1, 5);
  wrong.part.record.pop_back();
  const auto run = merge({part_file(0, 5), wrong});
  EXPECT_THAT(run->ranks[1].notes, testing::Contains(HasSubstr("no part of this run")));
  EXPECT_TRUE(run->ranks[1].lost);
  EXPECT_EQ(run->sections, 10U);
}

TEST(Merge, ARankThatBeganLateSaysSo) {
  PartFile late = part_file(1, 5);
  late.part.row.late_seconds = 0.08;
  const auto run = merge({part_file(0, 5), late});
  EXPECT_DOUBLE_EQ(run->ranks[1].late_seconds, 0.08);
  EXPECT_THAT(run->ranks[1].notes, testing::Contains(HasSubstr("80 ms late")));
  EXPECT_THAT(run->ranks[0].notes, testing::IsEmpty());
}

TEST(PartFile, IsReadAsItWasSavedAndByTheSameBuildOnly) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("lockbench-part-" + std::to_string(getpid()));
  PartFile one = part_file(1, 3);
  one.hello.build = "this";
  one.order.part_path = (folder / "out.json").string();
  ASSERT_TRUE(save(one));
  std::ifstream file(path_of(one.order, 1), std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(is_part(text));
  const auto read = read_part(text, "this");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(to_bytes(*read), to_bytes(one));
  EXPECT_THAT(read_part(text, "other").error(), HasSubstr("another build"));
  EXPECT_THAT(read_part(text.substr(0, text.size() / 2), "this").error(), HasSubstr("damaged"));
  std::filesystem::remove_all(folder);
}

TEST(PartFile, OfARunThatCannotBeIsRefused) {
  const auto read = [](const PartFile& file) {
    return read_part("lockbench.part/1 this\n" + to_bytes(file), "this");
  };
  EXPECT_TRUE(read(part_file(1, 1)));
  PartFile wrong = part_file(1, 1);
  wrong.part.row.rank = 2;
  EXPECT_FALSE(read(wrong));
  wrong = part_file(1, 1);
  wrong.ranks = 1'000'000'000;
  EXPECT_FALSE(read(wrong));
  wrong = part_file(1, 1);
  wrong.order.workload.clients = -1;
  EXPECT_FALSE(read(wrong));
}

}  // namespace
}  // namespace lockbench::loadgen::cluster

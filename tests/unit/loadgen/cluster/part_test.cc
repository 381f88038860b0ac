#include "loadgen/cluster/part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "loadgen/cluster/wire.h"
#include "results/file/json.h"
#include "strategies/registry.h"
#include "tests/support/run_shared.h"
#include "tests/support/temporary_folder.h"

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

/// Records a client's wait and the rest of a section.
void record(RunShared& run, int client, Duration waited, Phase phase, bool cut) {
  Recorder& recorder = run.recorder;
  auto& histograms = recorder.histograms(phase);
  histograms[cut ? Timing::timed_out : Timing::acquired].record(waited);
  histograms[cut ? Timing::service_cut : Timing::acquire_service].record(waited);
  Counts counts;
  counts[cut ? Count::failed_taken : Count::sections] = 1;
  counts[Count::commands] = 3;
  recorder.client(client).add(phase, counts);
  if (phase == Phase::measured) {
    recorder.waits().record(client, waited, cut);
    recorder.command("SET").record(waited / 2);
  }
  recorder.add(phase, Count::renewals);
  if (cut) recorder.failure("it took too long");
  run.used.mark(0);
}

/// A result as text, without numbers whose sums depend on their order.
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
  std::mt19937 random(5);
  std::lognormal_distribution<double> waits(-7, 1.5);
  for (int i = 0; i < 20'000; ++i) {
    const auto client = static_cast<int>(random() % kClientsOfRecord);
    const auto waited =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(waits(random)));
    const auto rank = static_cast<std::size_t>(client / (kClientsOfRecord / kRanksOfRecord));
    for (RankUnderTest* one : {&alone, ranks.at(rank).get()}) {
      record(one->shared(), client, waited, i < 1000 ? Phase::unmeasured : Phase::measured,
             i % 50 == 0);
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
    audit.enter(0, 0, Mode::exclusive, 7, {}, now);
    const AcquireMark mark = audit.begin_acquire(0);
    audit.enter(0, 1, Mode::exclusive, 6, mark, now + 1ms);
    audit.leave(0, Mode::exclusive, now + 3ms);
    audit.leave(0, Mode::exclusive, now + 4ms);
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
  const auto overwritten = make_reported_counter(1);
  for (const std::uint64_t highest : {10, 12}) {
    overwritten->add({.key = 0, .accepted = 10, .initial = 1, .highest = highest, .stored = true});
  }
  EXPECT_EQ(overwritten->totals()->lost, 8U);
}

constexpr int kClientsOfTwo = 4;

/// The record of one of two ranks, with `sections` sections of each of its clients.
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
  PartFile late = part_file(1, 30);
  late.part.row.late_seconds = 0.08;
  const auto run = merge({late, part_file(0, 10)});
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(run->sections, 80U);
  EXPECT_EQ(run->acquire.count, 80U);
  EXPECT_EQ(run->acquire.max, 0.03);
  EXPECT_THAT(run->fairness.per_client, testing::ElementsAre(10, 10, 30, 30));
  EXPECT_EQ(run->sections_per_second, 40);
  ASSERT_EQ(run->series.size(), 1U);
  EXPECT_EQ(run->series[0].sections, 80U);
  EXPECT_FALSE(run->ranks[0].lost || run->ranks[1].lost);
  EXPECT_DOUBLE_EQ(run->ranks[1].late_seconds, 0.08);
  EXPECT_THAT(run->ranks[1].notes, testing::Contains(HasSubstr("80 ms late")));
  EXPECT_THAT(run->ranks[0].notes, testing::IsEmpty());
}

TEST(Merge, TheSeriesHasTheWaitsOfAllRanksOrTheHighestOfTheirPercentiles) {
  PartFile one = part_file(0, 10), other = part_file(1, 10);
  HistogramSnapshot waits;
  waits.record(2ms);
  waits.record(2ms);
  one.part.series[0].acquire_p50 = 0.002;
  one.part.acquired = {to_bytes(waits)};
  waits = {};
  waits.record(9ms);
  other.part.series[0].acquire_p50 = 0.009;
  other.part.acquired = {to_bytes(waits)};
  EXPECT_NEAR(merge({one, other})->series[0].acquire_p50, 0.002, 1e-4) << "of the three waits";
  other.part.acquired.clear();
  EXPECT_EQ(merge({one, other})->series[0].acquire_p50, 0.009);
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

TEST(Merge, ARankThatIsMissingCutOffOrDamagedIsMarked) {
  PartFile cut = part_file(1, 5);
  cut.part.complete = false;
  EXPECT_TRUE(merge({part_file(0, 5), cut})->ranks[1].lost);
  PartFile damaged = part_file(1, 5);
  damaged.part.record.pop_back();
  const auto without = merge({part_file(0, 5), damaged});
  EXPECT_THAT(without->ranks[1].notes, testing::Contains(HasSubstr("no valid part of this run")));
  EXPECT_TRUE(without->ranks[1].lost);
  EXPECT_EQ(without->sections, 10U);
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

TEST(PartFile, IsReadAsItWasSavedAndByTheSameBuildOnly) {
  const test::TemporaryFolder folder;
  PartFile one = part_file(1, 3);
  one.hello.build = "this";
  one.order.part_path = (folder / "new/out.json").string();
  ASSERT_TRUE(save(one));
  std::ifstream file(path_of(one.order, 1), std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(is_part(text));
  const auto read = read_part(text, "this");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(to_bytes(*read), to_bytes(one));
  EXPECT_THAT(read_part(text, "other").error(), HasSubstr("another build"));
  EXPECT_THAT(read_part(text.substr(0, text.size() / 2), "this").error(), HasSubstr("damaged"));
}

TEST(PartFile, OfARunThatCannotBeIsRefused) {
  const auto read = [](const std::function<void(PartFile&)>& change) {
    PartFile file = part_file(1, 1);
    change(file);
    return read_part("lockbench.part/1 this\n" + to_bytes(file), "this").has_value();
  };
  EXPECT_TRUE(read([](PartFile&) {}));
  EXPECT_FALSE(read([](PartFile& file) { file.part.row.rank = 2; }));
  EXPECT_FALSE(read([](PartFile& file) { file.ranks = 1'000'000'000; }));
  EXPECT_FALSE(read([](PartFile& file) { file.order.workload.clients = -1; }));
}

TEST(Wire, AnOrderComesBackAsItWas) {
  Order sent;
  sent.run_id = "id";
  sent.strategy = "redlock";
  sent.workload.hold = DurationDistribution::uniform(1ms, 3ms);
  sent.workload.hot_set = HotSet{.share = 0.5, .keys = 3, .moves_every = 2s};
  sent.workload.iterations = 100;
  sent.workload.strategy.wait = WaitPolicy::backoff(1ms, 2ms);
  sent.workload.resource = Resource::redis_fenced;
  sent.endpoints = {{"redis", {"redis://a", "redis://b"}}};
  Order received;
  ASSERT_TRUE(from_bytes(to_bytes(sent), received));
  EXPECT_EQ(to_bytes(received), to_bytes(sent));
  EXPECT_EQ(received.workload.hold, sent.workload.hold);
  EXPECT_EQ(received.endpoints, sent.endpoints);
}

TEST(Wire, AnyBytesAreReadWithoutHarm) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    Part part;
    (void)from_bytes(bytes, part);  // it only has to return
  }
}

}  // namespace
}  // namespace lockbench::loadgen::cluster

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "loadgen/cluster/part.h"
#include "loadgen/cluster/wire.h"
#include "strategies/registry.h"
#include "tests/support/run_shared.h"

namespace lockbench::loadgen::cluster {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

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

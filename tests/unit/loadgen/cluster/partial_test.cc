#include "loadgen/cluster/partial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "loadgen/cluster/wire.h"
#include "strategies/registry.h"
#include "tests/support/run_shared.h"

namespace lockbench::loadgen::cluster {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr int kClientsOfTwo = 4;

/// What a rank of two has recorded: so many sections of each of its clients.
Partial partial(int rank, int sections) {
  test::RunUnderTest run(*find_strategy("none"), kClientsOfTwo, 0, make_reported_counter(1));
  run.shared().share = {rank, 2, kClientsOfTwo};
  for (int i = 0; i < 2; ++i) {
    for (int s = 0; s < sections; ++s) run.grant(1ms * (s + 1), Phase::measured, 2 * rank + i);
  }
  Partial made;
  made.rank = rank;
  made.ranks = 2;
  made.hello.host = made.hello.boot = "host-" + std::to_string(rank);
  made.order.run_id = "run";
  made.order.strategy = "none";
  made.order.workload.clients = kClientsOfTwo;
  made.measured = 2s;
  made.complete = true;
  made.record = Recording(run.shared()).take(true);
  made.series = {{.point = {.t = 1, .sections = static_cast<std::uint64_t>(2 * sections)}}};
  return made;
}

TEST(Partial, TheFilesOfAllRanksMakeTheWholeRun) {
  const auto run = merge({partial(1, 30), partial(0, 10)});
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

TEST(Partial, RanksThatLeftCoresOfTheirHostIdleAreNotTheBottleneck) {
  std::vector<Partial> ranks{partial(0, 10), partial(1, 10)};
  for (Partial& rank : ranks) {
    rank.hello = {.host = "host", .boot = "boot", .cores = 8};
    rank.use.cpu_seconds = 6;
    rank.use.wall_seconds = 2;
  }
  const auto run = merge(ranks);
  ASSERT_TRUE(run) << run.error();
  EXPECT_DOUBLE_EQ(run->ranks[0].cpu_share, 3.0 / 8);
  EXPECT_DOUBLE_EQ(run->generator.cpu_share, 6.0 / 8);
  EXPECT_THAT(run->generator.reasons, testing::Not(testing::Contains(HasSubstr("of its CPU"))));
}

TEST(Partial, AMissingRankAndOneThatWasCutOffAreMarked) {
  Partial cut = partial(1, 5);
  cut.complete = false;
  EXPECT_TRUE(merge({partial(0, 5), cut})->ranks[1].lost);
  const auto run = merge({partial(0, 5)});
  EXPECT_TRUE(run->ranks[1].lost);
  EXPECT_FALSE(run->generator.valid);
  EXPECT_EQ(run->sections, 10U);
}

TEST(Partial, FilesOfDifferentRunsOrTwiceTheSameRankAreRefused) {
  Partial other = partial(1, 5);
  other.order.run_id = "other";
  EXPECT_THAT(merge({partial(0, 5), other}).error(), HasSubstr("different runs"));
  EXPECT_THAT(merge({partial(0, 5), partial(0, 5)}).error(), HasSubstr("rank 0"));
  EXPECT_FALSE(merge({}));
}

TEST(Partial, AFileIsReadAsItWasSavedAndByTheSameBuildOnly) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("lockbench-partial-" + std::to_string(getpid()));
  Partial one = partial(1, 3);
  one.order.partial_path = (folder / "out.json").string();
  ASSERT_TRUE(save(one, "this"));
  std::ifstream file(path_of(one.order, 1), std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(is_partial(text));
  const auto read = read_partial(text, "this");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(to_bytes(*read), to_bytes(one));
  EXPECT_THAT(read_partial(text, "other").error(), HasSubstr("another build"));
  EXPECT_THAT(read_partial(text.substr(0, text.size() / 2), "this").error(), HasSubstr("damaged"));
  forget(one.order, 1);
  EXPECT_FALSE(std::filesystem::exists(path_of(one.order, 1)));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockbench::loadgen::cluster

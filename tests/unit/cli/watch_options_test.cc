#include <filesystem>

#include "cli/commands/commands.h"
#include "tests/unit/cli/fixtures.h"
#include "watch/workload.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

tl::expected<WatchOptions, std::string> parse_watch(const std::vector<std::string>& args) {
  return parse<WatchOptions>(args);
}

std::string watch_error(const std::vector<std::string>& args) {
  return error_of<WatchOptions>(args);
}

const std::vector<std::string> watched_redis = {"--redis", "redis://h:6379"};

std::vector<std::string> with_redis(std::vector<std::string> args) {
  args.insert(args.end(), watched_redis.begin(), watched_redis.end());
  return args;
}

TEST(WatchOptions, EveryOptionReachesTheWatch) {
  const auto options = parse_watch(
      with_redis({"--locks=lock:*,job:*", "--locks=x", "--budget=50", "--most-locks=1000",
                  "--held-longer=30s", "--store-timeout=1s", "--duration=1m", "--no-screen",
                  "--record=r.json", "--workload=w.toml", "--metrics-listen=:9466"}));
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->request.locks, ElementsAre("lock:*", "job:*", "x"));
  EXPECT_EQ(options->request.budget, 50);
  EXPECT_EQ(options->request.command_timeout, 1s);
  EXPECT_EQ(options->request.most_locks, 1000U);
  EXPECT_EQ(options->ledger_options().most_locks, 1000U);
  EXPECT_EQ(options->ledger_options().held_longer, Duration(30s));
  EXPECT_EQ(options->duration, Duration(1min));
  EXPECT_EQ(options->output.out, "r.json");
  EXPECT_EQ(options->workload, "w.toml");
  EXPECT_EQ(options->metrics.listen->port, 9466);
  EXPECT_TRUE(options->no_screen);
}

TEST(WatchOptions, GroupByNameBeforeLocks) {
  const auto grouping = [](std::vector<std::string> args) {
    return parse_watch(with_redis(std::move(args))).value().grouping();
  };
  EXPECT_EQ(grouping({"--locks", "lock:*"}).family_of("lock:order:17"), "lock:*");
  EXPECT_EQ(grouping({"--locks", "lock:*", "--name", "lock:(?<family>[a-z]+):.*"})
                .family_of("lock:order:17"),
            "order");
}

TEST(WatchOptions, OnceEndsByItself) {
  EXPECT_EQ(parse_watch(with_redis({"--once"}))->duration, WatchOptions::kOnce);
  EXPECT_EQ(parse_watch(with_redis({"--once", "--duration", "9s"}))->duration, Duration(9s));
  EXPECT_FALSE(parse_watch(watched_redis)->duration);
}

TEST(WatchOptions, WhatCannotBeWatchedIsNamed) {
  EXPECT_THAT(watch_error({}), HasSubstr("give servers, such as --redis URL"));
  EXPECT_THAT(watch_error({"--memcached", "h:11211"}), StartsWith("unknown option --memcached"));
  EXPECT_THAT(watch_error(with_redis({"--lock-table", "t"})), HasSubstr("requires --postgres"));
  EXPECT_THAT(watch_error(with_redis({"--locks", "lock:*,"})),
              StartsWith("--locks: \"\" is no name of a lock"));
  EXPECT_THAT(watch_error(with_redis({"--budget", "0"})), HasSubstr("1 to 100000"));
  EXPECT_THAT(watch_error(with_redis({"--name", "lock:.*"})), StartsWith("--name: "));
  EXPECT_THAT(watch_error(with_redis({"--name", "("})), StartsWith("--name: "));
}

TEST(WatchOptions, AWorkloadIsNotReplacedByTheRecordNorTheReport) {
  const TemporaryFile file("seen.toml", "");
  const std::filesystem::path path = file.path();
  const std::string again = path.parent_path() / "." / path.filename();
  for (const std::string option : {"--record", "--report"}) {
    const Ran refused =
        ran({"watch", "--redis", "redis://127.0.0.1:1", "--workload", file.path(), option, again});
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("--workload and " + option + " must be different files"));
  }
}

TEST(SameFile, IsOneByWhateverNameAlsoBeforeItIsThere) {
  EXPECT_TRUE(same_file("not-there.json", "./not-there.json"));
  EXPECT_FALSE(same_file("not-there.json", "not-there.toml"));
  EXPECT_FALSE(same_file("/dev/null", "/dev/null"));
}

TEST(WatchedWorkload, IsWhatRunCapacityAndChooseTake) {
  const TemporaryFile file("watched \"1\".toml", "");
  const watch::ObservedWorkload workload{.rate = 120.5,
                                         .constant_arrival = true,
                                         .clients = 20,
                                         .keys = 50,
                                         .key_skew = 1.04,
                                         .work_p50 = 2ms,
                                         .work_p99 = 12ms,
                                         .ttl = 10s,
                                         .shared_share = 0.25,
                                         .hold = {{0, 1ms}, {0.5, 2ms}, {1, 12ms}},
                                         .remarks = {"No TTL \"was\" seen."}};
  const auto written = watch::write_workload(workload, file.path());
  ASSERT_TRUE(written) << written.error();

  const auto run = parse_run({"--config", file.path()});
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(run->workload.rate, 120.5);
  EXPECT_EQ(run->workload.arrival, loadgen::Arrival::constant);
  EXPECT_EQ(run->workload.key_skew, 1.04);
  EXPECT_EQ(run->workload.shared_share, 0.25);
  const auto capacity = parse<CapacityOptions>({"--config", file.path()});
  ASSERT_TRUE(capacity) << capacity.error();
  EXPECT_EQ(capacity->planned_rate, 120.5);
  for (const loadgen::Workload& load : {run->workload, capacity->workload}) {
    EXPECT_EQ(load.clients, 20);
    EXPECT_EQ(load.keys, 50);
    EXPECT_EQ(load.ttl, 10s);
    EXPECT_EQ(load.hold.mean(), 4'250us);
  }
  const auto choose = parse<ChooseOptions>({"--config", file.path(), "--measure"});
  ASSERT_TRUE(choose) << choose.error();
  EXPECT_EQ(choose->requirements.rate, 120.5);
  EXPECT_EQ(choose->requirements.clients, 20);
  EXPECT_EQ(choose->requirements.key_skew, 1.04);
  EXPECT_EQ(choose->requirements.work_p50, 2ms);
  EXPECT_EQ(choose->requirements.work_p99, 12ms);
  EXPECT_TRUE(choose->requirements.shared);
}

}  // namespace
}  // namespace lockbench::cli

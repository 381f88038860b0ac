#include <gmock/gmock.h>

#include "tests/conformance/common/bench.h"

namespace lockbench::test {
namespace {

TEST(Store, RemovesARunWithItsPartsAndNothingElse) {
  const auto server = own_redis();
  const auto store = find_store_kind("redis")->make(server->url(), kPatience);
  RedisProbe probe(server->port());
  const std::string run = "20261121T012530Z-4f3a9c";
  // More keys than one page of SCAN.
  for (int i = 0; i < 3000; ++i)
    probe.ask({"SET", fmt::format("lockbench:{}:{{{}}}", run, i), "1"});
  probe.ask({"SET", fmt::format("lockbench:{}-12:{{0}}:fencing", run), "1"});
  std::vector<std::string> others = {fmt::format("lockbench:{}1:{{0}}", run),
                                     fmt::format("lockbench:{}-x:{{0}}", run),
                                     fmt::format("other:lockbench:{}:{{0}}", run),
                                     "lockbench:20261121T012530Z-4f3a9d:{0}",
                                     "lockbench:",
                                     fmt::format("lockbench:{}", run),
                                     fmt::format("lockbench:{}-1", run)};
  for (const std::string& key : others) probe.ask({"SET", key, "1"});

  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(store->remove_run(run, stop.get_token()));
  EXPECT_EQ(store->remove_run(run, {}).value_or(0), 3001U);
  EXPECT_THAT(probe.keys(), testing::UnorderedElementsAreArray(others));
  EXPECT_EQ(store->remove_run(run, {}).value_or(99), 0U);
  EXPECT_EQ(store->remove_run("*", {}).value_or(99), 0U) << "no pattern";
  EXPECT_THAT(probe.keys(), testing::SizeIs(others.size()));
}

/// As PostgreSQL's schemas: fencing numbers and locks without a TTL stay until then.
TEST(Store, RemovesTheKeysOfAKilledRunAfterALaterRunADayAfterItsEnd) {
  using std::chrono::hours;
  const auto server = own_redis();
  const auto store = find_store_kind("redis")->make(server->url(), kPatience);
  RedisProbe probe(server->port());
  const auto prefix = [](std::string_view run) { return fmt::format("lockbench:{}:{{x:1:", run); };
  const std::string killed = prefix("20261121T012530Z-4f3a9c"),
                    alive = prefix("20261121T012530Z-4f3a9d"),
                    ours = prefix("20261121T012530Z-4f3a9e");
  const WallTime now(std::chrono::seconds(std::stoll(probe.ask({"TIME"}))));
  ASSERT_TRUE(store->begin_keys(killed, now - hours(25), {}));
  ASSERT_TRUE(store->begin_keys(alive, now - hours(23), {}));
  ASSERT_TRUE(store->begin_keys(ours, now + hours(1), {}));
  const std::vector<std::string> others = {alive + "0}:fencing", "lockbench:foreign:{x}", "orders"};
  for (const std::string& key : others) probe.ask({"SET", key, "1"});
  probe.ask({"SET", killed + "0}:fencing", "1"});
  // Whatever is noted there, only keys of runs are removed.
  for (const char* noted : {"orders", "lockbench:foreign:{", "", "*"}) {
    probe.ask({"ZADD", "lockbench:runs", "1", noted});
  }
  ASSERT_TRUE(store->end_keys(ours, {}));
  EXPECT_TRUE(probe.exists(killed + "0}:fencing")) << "its own note is all that this looks at";
  ASSERT_TRUE(store->remove_old_runs({}));
  std::vector<std::string> left = others;
  left.emplace_back("lockbench:runs");
  EXPECT_THAT(probe.keys(), testing::UnorderedElementsAreArray(left));
  EXPECT_EQ(probe.ask({"ZRANGE", "lockbench:runs", "0", "-1"}), alive + "\n");
  EXPECT_EQ(store->remove_run("20261121T012530Z-4f3a9d", {}).value_or(99), 1U);
  EXPECT_FALSE(probe.exists("lockbench:runs"));
}

TEST(RedisStore, GoesOnWithTheKeysOfAKilledRunWhereTheLastCallEnded) {
  using std::chrono::hours;
  const auto server = own_redis();
  const auto store = find_store_kind("redis")->make(server->url(), kPatience);
  RedisProbe probe(server->port());
  const std::string killed = "lockbench:20261121T012530Z-4f3a9c:{x:1:";
  for (int key = 0; key < 100; ++key) probe.ask({"SET", fmt::format("{}{}}}", killed, key), "1"});
  const WallTime now(std::chrono::seconds(std::stoll(probe.ask({"TIME"}))));
  ASSERT_TRUE(store->begin_keys(killed, now - hours(25), {}));
  // A scan that began an hour ago, and one that no server has given.
  const std::string cursor = lines_of(probe.ask({"SCAN", "0", "COUNT", "20"})).front();
  const std::string begun = std::to_string(
      std::chrono::floor<std::chrono::seconds>(now - hours(1)).time_since_epoch().count());
  probe.ask({"ZADD", "lockbench:runs", "-" + begun, "cursor:" + cursor, "-1", "cursor:x"});
  ASSERT_TRUE(store->remove_old_runs({}));
  EXPECT_THAT(probe.keys().size(), testing::AllOf(testing::Ge(10U), testing::Le(40U)))
      << "the first keys were looked at before";
  EXPECT_FALSE(probe.exists("lockbench:runs")) << "the scan has ended";

  // A run that became old only after the scan had begun needs another one.
  ASSERT_TRUE(store->begin_keys(killed, now - hours(24) - std::chrono::minutes(30), {}));
  probe.ask({"ZADD", "lockbench:runs", "-" + begun, "cursor:" + cursor});
  ASSERT_TRUE(store->remove_old_runs({}));
  EXPECT_EQ(probe.ask({"ZRANGE", "lockbench:runs", "0", "-1"}), killed + "\n");
  ASSERT_TRUE(store->remove_old_runs({}));
  EXPECT_TRUE(probe.keys().empty());
}

}  // namespace
}  // namespace lockbench::test

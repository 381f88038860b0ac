#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sstream>

#include "tests/integration/watch/sightings.h"
#include "tests/support/servers.h"

namespace lockbench::watch {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// The least rights of a watch, as documented.
constexpr std::string_view kLeastRights =
    "watcher on >hunter2 %R~lock:* %R~redisson_lock_queue:* &__redis__:invalidate "
    "&__keyspace@0__:lock:* "
    "&redisson_lock__channel:* +pttl +get +getrange +hscan +type +llen +zcard "
    "+scan +ping +select +subscribe "
    "+psubscribe +pubsub|numsub +client|id +client|tracking +config|get";

bool is_held(const Sighting& one) { return !one.holders.empty(); }

class WatchedRedis : public testing::Test {
 protected:
  explicit WatchedRedis(testbed::RedisOptions options = {.durable = false})
      : server_(test::own_redis(std::move(options))), app_(server_->port()) {}

  /// Returns once it watches and has looked at the existing keys.
  std::unique_ptr<Running> watch(Request request = {.locks = {"lock:*"}}, std::string url = {}) {
    const std::string before = "lock:before-the-watch";
    app_.ask({"SET", before, "me", "PX", "60000"});
    auto running =
        std::make_unique<Running>("redis", url.empty() ? server_->url() : url, request, seen_);
    EXPECT_TRUE(request.locks.empty() ? seen_.comes([&] { return !seen_.facts_.store.empty(); })
                                      : seen_.await_held(before, "me").has_value());
    return running;
  }
  std::string watchers_url() const {
    return fmt::format("redis://watcher:hunter2@127.0.0.1:{}", server_->port());
  }
  using Words = std::vector<std::string>;
  const std::unique_ptr<testbed::Server> server_;
  test::RedisProbe app_;
  Sightings seen_;
};

TEST_F(WatchedRedis, AGrantARenewalAndAReleaseAreSeen) {
  const auto running = watch();
  EXPECT_EQ(seen_.facts_.way, "CLIENT TRACKING");
  EXPECT_EQ(seen_.facts_.accuracy, Accuracy::at_least);
  EXPECT_THAT(seen_.facts_.unseen,
              testing::Contains(testing::StartsWith("overwritten locks (stolen), as notify")));
  app_.ask({"SET", "lock:a", "me", "NX", "PX", "30000"});
  const auto held = seen_.await_held("lock:a", "me");
  ASSERT_TRUE(held);
  EXPECT_EQ(held->shape, Shape::token);
  EXPECT_GT(held->ttl_left, std::chrono::seconds(20));
  EXPECT_EQ(held->changes, 1U);
  app_.ask({"PEXPIRE", "lock:a", "60000"});
  ASSERT_TRUE(seen_.await(
      "lock:a", [](const Sighting& one) { return one.ttl_left > std::chrono::seconds(40); }));
  // A refused attempt changes nothing.
  app_.ask({"SET", "lock:a", "other", "NX", "PX", "30000"});
  app_.remove({"lock:a"});
  ASSERT_TRUE(seen_.await_free("lock:a", held->at));
  EXPECT_EQ(seen_.all_of("lock:a").size(), 3U);
}

TEST_F(WatchedRedis, RedissonsHashesAndQueuesAreRead) {
  const auto running = watch();
  app_.ask({"HSET", "lock:hash", "b1f5:17", "2"});
  app_.ask({"PEXPIRE", "lock:hash", "30000"});
  app_.ask({"RPUSH", "redisson_lock_queue:{lock:hash}", "x:1", "y:2", "z:3"});
  const auto queue = seen_.await("lock:hash", [](const Sighting& one) { return one.waiters == 3; });
  ASSERT_TRUE(queue);
  EXPECT_TRUE(queue->only_waiters);
  const auto held = seen_.await_held("lock:hash", "b1f5:17");
  ASSERT_TRUE(held);
  EXPECT_EQ(held->shape, Shape::redisson_hash);
  EXPECT_EQ(held->holders.front().entries, 2U);
  app_.ask({"SET", "lock:jobs:queue", "me", "PX", "30000"});
  EXPECT_TRUE(seen_.await_held("lock:jobs:queue", "me")) << "a lock of that name";
  app_.ask({"INCRBY", "lock:f:fencing", "41"});
  app_.ask({"SET", "lock:f", "me", "PX", "30000"});
  ASSERT_TRUE(seen_.await_held("lock:f", "me"));
  running->stop();
  EXPECT_THAT(seen_.of_["lock:f:fencing"], IsEmpty());
}

TEST_F(WatchedRedis, OneCommandCountsTheSubscribersOfAllLocks) {
  constexpr int kLocks = 100;
  const auto running = watch();
  for (int i = 0; i < kLocks; ++i) app_.ask({"HSET", fmt::format("lock:{}", i), "b1f5:17", "1"});
  const auto is_counted = [](const Sighting& one) { return one.only_waiters; };
  for (int i = 0; i < kLocks; ++i) ASSERT_TRUE(seen_.await(fmt::format("lock:{}", i), is_counted));
  const std::string stats = app_.ask({"INFO", "commandstats"});
  const std::string name = "cmdstat_pubsub|numsub:calls=";
  const std::size_t place = stats.find(name);
  ASSERT_NE(place, std::string::npos);
  EXPECT_LT(std::stoi(stats.substr(place + name.size())), kLocks);
}

TEST_F(WatchedRedis, ValuesWithoutEndAreNotRead) {
  app_.ask({"SETRANGE", "lock:long", "2000000", "x"});
  app_.ask({"EVAL", "for i = 1, 20000 do redis.call('HSET', KEYS[1], i, 1) end", "1", "lock:wide"});
  app_.ask({"SET", "lock:empty", "", "PX", "60000"});
  const auto running = watch();
  EXPECT_TRUE(seen_.await_held("lock:empty", ""));
  app_.ask({"SET", "lock:a", "me", "PX", "60000"});
  EXPECT_TRUE(seen_.await_held("lock:a", "me"));
  running->stop();
  EXPECT_EQ(seen_.blind_, 0);
  EXPECT_THAT(seen_.of_["lock:wide"], IsEmpty());
}

TEST_F(WatchedRedis, WithoutAPatternLocksAreProposed) {
  app_.ask({"SET", "lock:order:17", "me", "PX", "60000"});
  app_.ask({"SET", "job:18", "550e8400-e29b-41d4-a716-446655440000", "PX", "60000"});
  app_.ask({"SET", "job:queue", "550e8400-e29b-41d4-a716-446655440000", "PX", "60000"});
  app_.ask({"INCRBY", "lock:order:17:fencing", "41"});
  app_.ask({"SET", "user:19", "Ann"});
  const auto running = watch({});
  EXPECT_TRUE(seen_.comes([&] {
    return seen_.proposed_.contains("lock:order:*") && seen_.proposed_.contains("job:*") &&
           seen_.proposed_.contains("job:queue");
  }));
  EXPECT_FALSE(seen_.was_proposed("lock:order:*:fencing"));
  EXPECT_FALSE(seen_.was_proposed("user:*"));
}

class RedisWithRights : public WatchedRedis {
 protected:
  RedisWithRights() {
    std::istringstream words{std::string(kLeastRights)};
    Words command{"ACL", "SETUSER"};
    for (std::string word; words >> word;) command.push_back(word);
    app_.ask(command);
    app_.ask({"ACL", "LOG", "RESET"});
  }
};

TEST_F(RedisWithRights, TheLeastAreEnough) {
  const auto running = watch({.locks = {"lock:*"}}, watchers_url());
  EXPECT_EQ(seen_.facts_.way, "CLIENT TRACKING");
  app_.ask({"SET", "lock:a", "me", "PX", "30000"});
  app_.ask({"HSET", "lock:b", "b1f5:17", "1"});
  ASSERT_TRUE(seen_.await_held("lock:a", "me"));
  ASSERT_TRUE(seen_.await_held("lock:b", "b1f5:17"));
  EXPECT_EQ(app_.ask({"ACL", "LOG"}), "");
}

TEST_F(RedisWithRights, WithdrawnRightsAreBlindnessAndEndNoHolding) {
  const auto running = watch({.locks = {"lock:*"}}, watchers_url());
  app_.ask({"SET", "lock:a", "me", "PX", "30000"});
  ASSERT_TRUE(seen_.await_held("lock:a", "me"));
  app_.ask({"ACL", "SETUSER", "watcher", "-pttl", "-getrange"});
  app_.ask({"PEXPIRE", "lock:a", "60000"});
  EXPECT_TRUE(seen_.comes([&] { return seen_.blind_ == 1; }));
  EXPECT_THAT(seen_.why_blind_, HasSubstr("NOPERM"));
  running->stop();
  for (const Sighting& one : seen_.of_["lock:a"]) EXPECT_TRUE(is_held(one));
}

TEST_F(RedisWithRights, WithoutTrackingAndNotificationsItSaysWhatIsMissing) {
  app_.ask({"ACL", "SETUSER", "watcher", "-client|tracking"});
  const auto source = make_source("redis", watchers_url(), {.locks = {"lock:*"}});
  const auto reached = (*source)->reach({});
  ASSERT_FALSE(reached);
  EXPECT_THAT(reached.error(), HasSubstr("client|tracking"));
}

TEST_F(RedisWithRights, KeysThatMayNotBeReadAreRefused) {
  const auto source = make_source("redis", watchers_url(), {.locks = {"other:*"}});
  const auto reached = (*source)->reach({});
  ASSERT_FALSE(reached);
  EXPECT_THAT(reached.error(), HasSubstr("NOPERM"));
  EXPECT_THAT(reached.error(), HasSubstr(server_->address()));
}

class NotifyingRedis : public WatchedRedis {
 protected:
  NotifyingRedis() : WatchedRedis({.durable = false, .config = {"notify-keyspace-events AK"}}) {}
};

TEST_F(NotifyingRedis, EveryHoldingOfAContendedKeyIsSeen) {
  constexpr int kHoldings = 500;
  // The counts need no budget.
  const auto running = watch({.locks = {"lock:*"}, .budget = 10});
  EXPECT_EQ(seen_.facts_.accuracy, Accuracy::exact);
  EXPECT_TRUE(seen_.comes([&] { return seen_.facts_.progress.empty(); }));
  // All in one turn of the server's loop.
  app_.ask({"EVAL",
            "for i = 1, ARGV[1] do redis.call('SET', KEYS[1], i) redis.call('DEL', KEYS[1]) end",
            "1", "lock:a", std::to_string(kHoldings / 10)});
  for (int i = 0; i < kHoldings - kHoldings / 10; ++i) {
    app_.ask({"SET", "lock:a", std::to_string(i), "PX", "30000"});
    app_.remove({"lock:a"});
  }
  int grants = 0;
  const bool all = seen_.comes([&] {
    grants = 0;
    bool held = false;
    for (const Sighting& one : seen_.of_["lock:a"]) {
      grants += is_held(one) && !held ? 1 : 0;
      held = is_held(one);
    }
    return grants >= kHoldings;
  });
  running->stop();
  std::uint64_t missed = 0;
  for (const auto& [why, count] : seen_.missed_) missed += count;
  EXPECT_TRUE(all) << grants << " seen, " << missed << " events missed";
  EXPECT_EQ(grants, kHoldings);
}

TEST_F(NotifyingRedis, WithoutTheRightToSubscribeItSaysWhatItCannotSee) {
  app_.ask({"ACL", "SETUSER", "watcher", "on", ">hunter2", "~*", "&*", "+@all", "-psubscribe"});
  const auto running = watch({.locks = {"lock:*"}}, watchers_url());
  EXPECT_EQ(seen_.facts_.way, "CLIENT TRACKING");
  EXPECT_THAT(seen_.facts_.unseen, testing::Contains(testing::AllOf(
                                       HasSubstr("overwritten locks"),
                                       HasSubstr("PSUBSCRIBE was refused"), HasSubstr("NOPERM"))));
}

TEST(WatchOfRedis, IsBlindDuringARestartAndSeesAfterwards) {
  const auto server = test::own_redis({.durable = false});
  Sightings seen;
  Running running("redis", server->url(), {.locks = {"lock:*"}}, seen);
  test::RedisProbe(server->port()).ask({"SET", "lock:a", "me"});
  ASSERT_TRUE(seen.await_held("lock:a", "me"));
  killed_and_back(*server, seen, false);
  EXPECT_THAT(seen.why_blind_, testing::Not(HasSubstr(server->address()))) << "said twice";
  test::RedisProbe(server->port()).ask({"SET", "lock:b", "me"});
  EXPECT_TRUE(seen.await_held("lock:b", "me"));
  running.stop();
}

}  // namespace
}  // namespace lockbench::watch

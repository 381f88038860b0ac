#include <gtest/gtest.h>

#include "strategies/redis/scripts.h"
#include "strategies/registry.h"
#include "tests/conformance/common/waiter.h"

namespace lockbench::test {
namespace {

/// How long a puppet's question is good for where it lives, and where it is as good as dead.
constexpr seconds kAlive{60};
constexpr milliseconds kDying{1};

/// redis-queue against clients that do only what they are told, such as to die.
class QueueRaces : public testing::Test {
 protected:
  struct Answer {
    bool granted = false;
    std::int64_t number = 0;
  };

  std::string key(std::string_view suffix) const { return bench_.key() + std::string(suffix); }

  /// A puppet's own question, in which its token is all that it is.
  Answer ask(const std::string& token, milliseconds alive = kAlive, milliseconds ttl = kLongTtl) {
    const std::string said =
        probe_.ask({"EVAL", std::string(redis::scripts::queue.source), "4", key(""), key(":queue"),
                    key(":liveness"), key(":numbers"), "ask", token, std::to_string(alive.count()),
                    std::to_string(ttl.count()), "1"});
    return {said.front() == '1', std::stoll(said.substr(2))};
  }
  int waiters() { return std::stoi(probe_.ask({"ZCARD", key(":queue")})); }
  bool waits(const std::string& token) {
    return !probe_.ask({"ZSCORE", key(":queue"), token}).empty();
  }

  Lease must_acquire(Client& client) { return granted(client.acquire(bench_.key(), patience())); }

  Bench bench_{*find_strategy("redis-queue"), unrenewed()};
  RedisProbe probe_{shared_redis().port()};
};

/// Also of more than one step drops.
TEST_F(QueueRaces, TheDeadAreDropped) {
  constexpr int kDead = 40;
  const auto holder = bench_.client();
  const Lease held = must_acquire(*holder);
  for (int i = 0; i < kDead; ++i) ASSERT_FALSE(ask("dead" + std::to_string(i), kDying).granted);
  Waiter next(bench_.client(), bench_.key());
  ASSERT_TRUE(next.waits());
  ASSERT_EQ(holder->release(held), ReleaseOutcome::released);
  ASSERT_TRUE(next.join().lease);
  EXPECT_EQ(waiters(), 0);
}

TEST_F(QueueRaces, AGrantThatIsNotTakenUpMovesOn) {
  const auto holder = bench_.client();
  const Lease held = must_acquire(*holder);
  ASSERT_FALSE(ask("stopped", seconds(2)).granted);
  Waiter next(bench_.client(), bench_.key());
  ASSERT_TRUE(next.waits());
  ASSERT_EQ(holder->release(held), ReleaseOutcome::released);
  ASSERT_TRUE(next.join().lease);
  // It wakes up too late: it does not get in, and queues again.
  EXPECT_FALSE(ask("stopped").granted);
  EXPECT_TRUE(waits("stopped"));
  next.client().release(*next.join().lease);
  EXPECT_TRUE(ask("stopped").granted);
}

TEST_F(QueueRaces, OneTokenHasOnePlaceHoweverOftenItAsks) {
  const auto holder = bench_.client();
  const Lease held = must_acquire(*holder);
  EXPECT_EQ(ask("one").number, 0);
  EXPECT_EQ(ask("two").number, 1);
  EXPECT_EQ(ask("one").number, 0);
  EXPECT_EQ(waiters(), 2);
  holder->release(held);
  const Answer granted = ask("one");
  EXPECT_TRUE(granted.granted);
  EXPECT_TRUE(ask("one").granted);  // its own lock does not block it
  EXPECT_FALSE(ask("two").granted);
}

TEST_F(QueueRaces, ALostAnswerLeavesNoPlaceBehind) {
  const auto holder = bench_.client(), unlucky = bench_.client();
  const Lease held = must_acquire(*holder);
  unlucky->faults().drop_answer(1);
  EXPECT_EQ(unlucky->acquire(bench_.key(), patience()).outcome, AcquireOutcome::unknown);
  EXPECT_EQ(waiters(), 0);
  EXPECT_EQ(holder->release(held), ReleaseOutcome::released);
  must_acquire(*unlucky);
}

TEST_F(QueueRaces, NothingIsLeftWhenEverybodyIsDead) {
  for (int i = 0; i < 5; ++i) ask("dead" + std::to_string(i), kDying, kShortTtl);
  const std::vector<std::string> numbers = {key(":numbers")};
  EXPECT_TRUE(eventually([&] { return probe_.keys() == numbers; })) << probe_.keys().size();
}

TEST_F(QueueRaces, AStoppedWaiterPassesItsGrantOn) {
  const auto holder = bench_.client();
  const Lease held = must_acquire(*holder);
  Waiter leaver(bench_.client(), bench_.key());
  ASSERT_TRUE(leaver.waits());
  Waiter next(bench_.client(), bench_.key());
  ASSERT_TRUE(next.waits());
  leaver.stop();
  ASSERT_EQ(holder->release(held), ReleaseOutcome::released);
  const AcquireResult& left = leaver.join();
  if (left.lease) leaver.client().release(*left.lease);  // the grant came first
  EXPECT_TRUE(next.join().lease);
}

}  // namespace
}  // namespace lockbench::test

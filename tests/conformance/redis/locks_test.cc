#include <gtest/gtest.h>

#include "strategies/redis/scripts.h"
#include "strategies/registry.h"
#include "tests/conformance/common/waiter.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// Lifetime of a puppet's request: one that lives, and one that is as good as dead.
constexpr seconds kAlive{60};
constexpr milliseconds kDying{1};

/// redis-queue against puppets: clients that only act as told, for example die.
class QueueRaces : public testing::Test {
 protected:
  struct Answer {
    bool granted = false;
    std::int64_t number = 0;
  };

  std::string key(std::string_view suffix) const { return bench_.key() + std::string(suffix); }

  /// A puppet's request; its token is its whole identity.
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

  ReleaseOutcome release() { return bench_.holder->release(bench_.held); }

  HeldBench bench_{kLongTtl, *find_strategy("redis-queue"), unrenewed()};
  RedisProbe probe_{shared_redis().port()};
};

/// Even if that takes several steps.
TEST_F(QueueRaces, TheDeadAreDropped) {
  constexpr int kDead = 40;
  for (int i = 0; i < kDead; ++i) ASSERT_FALSE(ask("dead" + std::to_string(i), kDying).granted);
  Waiter next(bench_.client(), bench_.key());
  ASSERT_TRUE(next.waits());
  ASSERT_EQ(release(), ReleaseOutcome::released);
  ASSERT_TRUE(next.join().lease);
  EXPECT_EQ(waiters(), 0);
}

TEST_F(QueueRaces, AGrantThatIsNotTakenUpMovesOn) {
  ASSERT_FALSE(ask("stopped", seconds(2)).granted);
  Waiter next(bench_.client(), bench_.key());
  ASSERT_TRUE(next.waits());
  ASSERT_EQ(release(), ReleaseOutcome::released);
  ASSERT_TRUE(next.join().lease);
  // It wakes up too late: it is not let in and queues again.
  EXPECT_FALSE(ask("stopped").granted);
  EXPECT_TRUE(waits("stopped"));
  next.client().release(*next.join().lease);
  EXPECT_TRUE(ask("stopped").granted);
}

TEST_F(QueueRaces, AGrantMayBeConfirmedWithinTheWindowOfItsWaiter) {
  ASSERT_FALSE(ask("distant", kAlive).granted);
  ASSERT_EQ(release(), ReleaseOutcome::released);
  const auto left = probe_.time_to_live(key(""));
  ASSERT_TRUE(left);
  EXPECT_GT(*left, kAlive / 2) << "and not within that of the releaser";
}

/// With a TTL of 100 ms and a constant window, a client 40 ms away would lose its place each time.
TEST(QueueWindow, GrowsWithTheDistanceOfItsClient) {
  Bench bench(*find_strategy("redis-queue"), unrenewed());
  const auto client = bench.client();
  warm_up(*client, bench.key());
  RedisMonitor monitor(shared_redis().port());
  const auto window = [&] {
    client->give_back(granted(client->try_once(bench.key())));
    for (const SeenCommand& seen : monitor.take_whole()) {
      if (seen.words.size() > 9 && seen.words[7] == "ask") return std::stoi(seen.words[9]);
    }
    return 0;
  };
  const int near = window();
  EXPECT_GT(near, 0);
  client->faults().next_answer_is_late(milliseconds(400));
  (void)window();
  EXPECT_GE(window(), near + 3 * 300);
}

TEST_F(QueueRaces, OneTokenHasOnePlaceHoweverOftenItAsks) {
  EXPECT_EQ(ask("one").number, 0);
  EXPECT_EQ(ask("two").number, 1);
  EXPECT_EQ(ask("one").number, 0);
  EXPECT_EQ(waiters(), 2);
  release();
  EXPECT_TRUE(ask("one").granted);
  EXPECT_TRUE(ask("one").granted);  // it is not blocked by its own lock
  EXPECT_FALSE(ask("two").granted);
}

TEST_F(QueueRaces, AStoppedWaiterPassesItsGrantOn) {
  Waiter leaver(bench_.client(), bench_.key());
  ASSERT_TRUE(leaver.waits());
  Waiter next(bench_.client(), bench_.key());
  ASSERT_TRUE(next.waits());
  leaver.stop();
  ASSERT_EQ(release(), ReleaseOutcome::released);
  const AcquireResult& left = leaver.join();
  if (left.lease) leaver.client().release(*left.lease);  // the grant came first
  EXPECT_TRUE(next.join().lease);
}

/// A waiting writer keeps readers out for three such waits.
StrategyOptions with_writers_preferred(bool preferred, Duration wait = std::chrono::hours(1)) {
  return {.wait = WaitPolicy::poll(wait), .prefer_writers = preferred};
}

/// Tests of redis-read-write that do not apply to every lock with a shared mode.
class ReadWrite : public testing::Test {
 protected:
  const Descriptor& strategy_ = *find_strategy("redis-read-write");
};

TEST_F(ReadWrite, ALateReaderOvertakesAWriterThatWaitsUnlessWritersArePreferred) {
  for (const bool preferred : {false, true}) {
    Bench bench(strategy_, with_writers_preferred(preferred));
    const auto reader = bench.client(), late = bench.client();
    EXPECT_TRUE(reader->share(bench.key()).lease);
    Waiter writer(bench.client(), bench.key());
    EXPECT_TRUE(writer.waits());
    EXPECT_EQ(late->share(bench.key()).outcome,
              preferred ? AcquireOutcome::refused : AcquireOutcome::acquired);
    writer.stop();
    EXPECT_EQ(writer.join().outcome, AcquireOutcome::abandoned);
    EXPECT_TRUE(late->share(bench.key()).lease) << "nobody waits any more";
  }
}

TEST_F(ReadWrite, AWriterThatGivesUpKeepsNobodyOut) {
  Bench bench(strategy_, with_writers_preferred(true));
  const auto reader = bench.client(), writer = bench.client(), late = bench.client();
  const Lease held = granted(reader->share(bench.key()));
  EXPECT_EQ(writer->try_once(bench.key()).outcome, AcquireOutcome::refused);
  EXPECT_TRUE(late->share(bench.key()).lease) << "a writer that does not wait";
  EXPECT_EQ(writer->acquire(bench.key(), milliseconds(20)).outcome, AcquireOutcome::timed_out);
  EXPECT_TRUE(late->share(bench.key()).lease);
}

TEST_F(ReadWrite, AWriterThatDiedWhileItWaitedKeepsReadersOutForALittleWhile) {
  Bench bench(strategy_, with_writers_preferred(true, seconds(1)));
  const auto reader = bench.client(), writer = bench.client(), late = bench.client();
  ASSERT_TRUE(reader->share(bench.key()).lease);
  warm_up(*late, bench.key() + ":other");
  writer->faults().drop_command(2, 1000);  // nothing arrives after the first attempt
  const TimePoint asked_at = writer->now();
  EXPECT_EQ(writer->acquire(bench.key(), patience()).outcome, AcquireOutcome::failed);
  EXPECT_TRUE(late->share(bench.key(), patience()).lease);
  EXPECT_GE(late->now() - asked_at, milliseconds(2990)) << "3 s by the server's time of day";
}

TEST_F(ReadWrite, AReaderThatLostItsPlaceLearnsOfIt) {
  Bench bench(strategy_, unrenewed());
  const auto reader = bench.client(), other = bench.client();
  const Lease kept = granted(other->share(bench.key())), held = granted(reader->share(bench.key()));
  RedisProbe(shared_store().server().port()).ask({"ZREM", bench.key() + ":readers", held.token});
  EXPECT_EQ(reader->lock().renew(held, kLongTtl).outcome, RenewOutcome::not_owner);
  EXPECT_TRUE(held.state->lost_at());
  EXPECT_EQ(reader->release(held), ReleaseOutcome::not_owner);
  EXPECT_EQ(other->release(kept), ReleaseOutcome::released) << "each has its own";
  EXPECT_TRUE(shared_store().keys().empty());
}

/// Like a client of another process: with separate services, and the same client number.
TEST(ReentrantLocks, AnotherOnesLostAnswerDoesNotEndTheLock) {
  Bench here(*find_strategy("redis-reentrant"));
  Bench there(here.descriptor(), shared_redis().url());
  const auto ours = here.client(), theirs = there.client();
  const Lease held = granted(ours->try_once(here.key()));
  theirs->faults().drop_answer(1);
  EXPECT_EQ(theirs->try_once(here.key()).outcome, AcquireOutcome::unknown);
  EXPECT_TRUE(RedisProbe(shared_redis().port()).exists(here.key()));
  EXPECT_EQ(ours->release(held), ReleaseOutcome::released);
}

class EveryReentrantLock : public testing::TestWithParam<const char*> {};

TEST_P(EveryReentrantLock, IsFreeOnlyAfterAsManyReleasesInWhateverOrder) {
  Bench bench(*find_strategy(GetParam()));
  const auto holder = bench.client(), other = bench.client();
  std::vector<Lease> leases;
  while (leases.size() < 4) leases.push_back(granted(holder->try_once(bench.key())));
  for (const std::size_t i : {2U, 0U, 3U}) {
    EXPECT_EQ(holder->release(leases[i]), ReleaseOutcome::released);
    EXPECT_EQ(other->try_once(bench.key()).outcome, AcquireOutcome::refused);
  }
  EXPECT_EQ(holder->release(leases[1]), ReleaseOutcome::released);
  EXPECT_EQ(holder->release(leases[1]), ReleaseOutcome::not_owner);
  EXPECT_TRUE(other->try_once(bench.key()).lease);
}

TEST_P(EveryReentrantLock, InnerReleasesKeepTheOuterLeaseRenewed) {
  Bench bench(*find_strategy(GetParam()), renewed_every(milliseconds(20)));
  const auto holder = bench.client();
  const Lease outer = granted(holder->try_once(bench.key()));
  const Lease inner = granted(holder->try_once(bench.key()));
  EXPECT_EQ(holder->release(inner), ReleaseOutcome::released);
  const TimePoint was = outer.state->valid_until();
  const int before = bench.worlds().ended();
  ASSERT_TRUE(bench.worlds().await_any(before + 3));
  EXPECT_GT(outer.state->valid_until(), was);
  EXPECT_FALSE(outer.state->lost_at());
  EXPECT_EQ(holder->release(outer), ReleaseOutcome::released);
}

TEST_P(EveryReentrantLock, WhatGotNoAnswerIsNotTakenForAnEarlierAcquisition) {
  Bench bench(*find_strategy(GetParam()), unrenewed());
  const auto holder = bench.client(), other = bench.client();
  const auto is_free_after_one_more = [&] {
    const AcquireResult again = holder->try_once(bench.key());
    EXPECT_TRUE(again.lease) << again.reason;
    if (!again.lease) return false;
    EXPECT_EQ(holder->release(*again.lease), ReleaseOutcome::released);
    const AcquireResult next = other->try_once(bench.key());
    if (next.lease) other->release(*next.lease);
    return next.lease.has_value();
  };
  warm_up(*holder, bench.key());
  const Lease held = granted(holder->try_once(bench.key()));
  holder->faults().drop_command(1);
  EXPECT_EQ(holder->release(held), ReleaseOutcome::failed);
  EXPECT_TRUE(is_free_after_one_more()) << "after a release that never arrived";
  holder->faults().drop_answer(1);
  holder->faults().drop_command(2);
  EXPECT_EQ(holder->try_once(bench.key()).outcome, AcquireOutcome::unknown);
  EXPECT_EQ(other->try_once(bench.key()).outcome, AcquireOutcome::refused);
  EXPECT_TRUE(is_free_after_one_more()) << "after an acquisition that could not be taken back";
  const Lease outer = granted(holder->try_once(bench.key()));
  holder->faults().drop_answer(1);
  EXPECT_EQ(holder->try_once(bench.key()).outcome, AcquireOutcome::unknown);
  EXPECT_EQ(holder->release(outer), ReleaseOutcome::released);
  EXPECT_TRUE(bench.becomes_free()) << "after one that was held already";
}

TEST_P(EveryReentrantLock, IsNotCalledReleasedWhileItMayBeCountedStill) {
  Bench bench(*find_strategy(GetParam()), unrenewed());
  const auto holder = bench.client();
  warm_up(*holder, bench.key());
  const Lease outer = granted(holder->try_once(bench.key()));
  holder->faults().drop_answer(1);
  EXPECT_EQ(holder->try_once(bench.key()).outcome, AcquireOutcome::unknown);
  holder->faults().drop_command(2);
  EXPECT_EQ(holder->release(outer), ReleaseOutcome::failed);
  EXPECT_TRUE(bench.is_held());
  warm_up(*holder, bench.key());
  EXPECT_TRUE(bench.becomes_free()) << "the next time it is taken back";
}

INSTANTIATE_TEST_SUITE_P(, EveryReentrantLock,
                         testing::Values("redis-reentrant", "redis-reentrant-notify"),
                         [](const auto& tested) { return test::test_name_of(tested.param); });

}  // namespace
}  // namespace lockbench::test

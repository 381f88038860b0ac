#include "tests/full/timing/timed.h"
#include "tests/support/broken_locks.h"
#include "tests/support/test_names.h"

// How soon calls end after a stop, at their deadline, or without an answer. One strategy per store,
// as the others share its client.

namespace lockbench::test {
namespace {

Duration end_after_a_stop(Timed& timed) {
  TimedClient holder = timed.client(), waiter = timed.client();
  EXPECT_TRUE(holder.acquire({}).lease);
  std::stop_source stop;
  return time_beyond([&] { waiter.acquire(seconds(20), kLongTtl, stop.get_token()); },
                     [&] {
                       EXPECT_TRUE(waiter.env->await_waiting());
                       stop.request_stop();
                     });
}

Duration end_after_the_deadline(Timed& timed) {
  TimedClient holder = timed.client(), waiter = timed.client();
  EXPECT_TRUE(holder.acquire({}).lease);
  const TimePoint begin = BootClock::now();
  waiter.acquire(milliseconds(500));
  return BootClock::now() - begin - milliseconds(500);
}

StrategyOptions with_timeout(Duration timeout) {
  StrategyOptions options;
  options.command_timeout = timeout;
  options.node_timeout = timeout;
  return options;
}

Duration end_without_an_answer(Timed& timed) {
  TimedClient client = timed.client();
  if (const AcquireResult warm = client.acquire(seconds(5)); warm.lease) {
    client.lock->release(*warm.lease);
  }
  timed.freeze();
  const TimePoint begin = BootClock::now();
  EXPECT_FALSE(client.acquire({}).lease);
  const Duration taken = BootClock::now() - begin;
  timed.thaw();
  return taken;
}

class Calls : public testing::TestWithParam<const char*> {};

TEST_P(Calls, EndSoonAfterAStop) {
  Timed timed(GetParam());
  EXPECT_TRUE(in_time(end_after_a_stop(timed), Timeouts::kAfterStop));
}

TEST_P(Calls, ToAFrozenServerEndSoonAfterAStop) {
  Timed timed(GetParam(), with_timeout(seconds(30)));
  TimedClient client = timed.client();
  if (const AcquireResult warm = client.acquire(seconds(5)); warm.lease) {
    client.lock->release(*warm.lease);
  }
  timed.freeze();
  std::stop_source stop;
  const Duration taken =
      time_beyond([&] { client.acquire(seconds(20), kLongTtl, stop.get_token()); },
                  [&] {
                    EXPECT_TRUE(client.env->await_command());
                    stop.request_stop();
                  });
  timed.thaw();
  EXPECT_TRUE(in_time(taken, Timeouts::kAfterStop));
}

TEST_P(Calls, EndSoonAfterTheirDeadline) {
  Timed timed(GetParam());
  EXPECT_TRUE(in_time(end_after_the_deadline(timed), {}));
}

/// One timeout for the missing answer, one for tidying up, and for a quorum each node in turn.
TEST_P(Calls, ToAFrozenServerEndWithTheirTimeOuts) {
  constexpr milliseconds kTimeout{200};
  Timed timed(GetParam(), with_timeout(kTimeout));
  EXPECT_TRUE(in_time(end_without_an_answer(timed), 7 * kTimeout));
}

INSTANTIATE_TEST_SUITE_P(Of, Calls,
                         testing::Values("redis-set-nx-lua", "redlock", "memcached-add",
                                         "postgres-advisory", "zookeeper", "etcd"),
                         [](const auto& tested) { return test_name_of(tested.param); });

TEST(BrokenCalls, AreLate) {
  Timed stopped(broken_lock("heeds_a_stop_late"));
  EXPECT_TRUE(is_late(end_after_a_stop(stopped), Timeouts::kAfterStop));
  Timed endless(broken_lock("ignores_the_deadline"));
  EXPECT_TRUE(is_late(end_after_the_deadline(endless), {}));
  Timed patient(broken_lock("waits_too_long_for_answers"), with_timeout(milliseconds(200)));
  EXPECT_TRUE(is_late(end_without_an_answer(patient), milliseconds(1400)));
}

/// The server first waits for the other waiter and then as long again for the holder: nearly twice
/// as long if nothing ended it.
TEST(RowLocks, HonourTheirDeadlineAlsoBehindOneThatGivesUp) {
  Timed timed("postgres-row");
  TimedClient holder = timed.client(), first = timed.client(), second = timed.client();
  ASSERT_TRUE(holder.acquire({}).lease);
  const Duration beyond =
      time_beyond([&] { EXPECT_EQ(second.acquire(seconds(5)).outcome, AcquireOutcome::timed_out); },
                  [&] { EXPECT_EQ(first.acquire(seconds(4)).outcome, AcquireOutcome::timed_out); });
  EXPECT_TRUE(in_time(beyond, seconds(1)));
}

/// The holder disappears without a release. A session ends with its connection.
TEST(Leases, OfTheDeadEndAtTheirTtl) {
  constexpr seconds kTtl{2};
  for (const char* strategy : {"redis-set-nx-lua", "redlock", "memcached-add", "postgres-lease",
                               "postgres-advisory", "zookeeper", "etcd"}) {
    StrategyOptions options;
    options.renew = RenewPolicy{.kind = RenewPolicy::Kind::off};
    Timed timed(strategy, options);
    TimedClient holder = timed.client(), next = timed.client();
    const TimePoint asked = BootClock::now();
    ASSERT_TRUE(holder.acquire({}, kTtl).lease) << strategy;
    holder.lock.reset();
    EXPECT_TRUE(next.acquire(seconds(30), kTtl).lease) << strategy;
    EXPECT_TRUE(
        in_time(BootClock::now() - asked, kTtl + find_strategy(strategy)->traits.kept_longer))
        << strategy;
  }
}

}  // namespace
}  // namespace lockbench::test

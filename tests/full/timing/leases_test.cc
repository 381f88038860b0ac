// When locks are handed on: by a message, at the end of a TTL or of a session.

#include "tests/full/timing/timed.h"
#include "tests/support/broken_locks.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// Of a lock that is released while another client waits for it.
Duration handoff(WaitPolicy waiting) {
  StrategyOptions options;
  options.wait = waiting;
  Timed timed("redis-reentrant", options);
  TimedClient holder = timed.client(), waiter = timed.client();
  const AcquireResult held = holder.acquire({});
  EXPECT_TRUE(held.lease);
  return time_beyond([&] { EXPECT_TRUE(waiter.acquire(seconds(30)).lease); },
                     [&] {
                       EXPECT_TRUE(waiter.env->await_sleep());
                       if (held.lease) holder.lock->release(*held.lease);
                     });
}

TEST(Handoffs, ByAMessageAreSoonerThanByPolling) {
  EXPECT_TRUE(in_time(handoff(WaitPolicy::notify()), {}));
  EXPECT_TRUE(is_late(handoff(WaitPolicy::poll(seconds(8))), {}));
}

/// The holder goes without releasing it. A session ends with its connection.
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

/// Nobody else is granted it within three TTLs.
bool outlives_its_ttl(const Descriptor& strategy) {
  constexpr seconds kTtl{6};
  Timed timed(strategy);
  TimedClient holder = timed.client(), other = timed.client();
  const AcquireResult held = holder.acquire({}, kTtl);
  EXPECT_TRUE(held.lease);
  if (other.acquire(3 * kTtl, kTtl).lease) return false;
  return held.lease && held.lease->state->valid_at(BootClock::now());
}

TEST(Leases, ThatAreRenewedOutliveTheirTtl) {
  for (const char* strategy : {"redis-watchdog", "redis-read-write"}) {
    EXPECT_TRUE(outlives_its_ttl(*find_strategy(strategy))) << strategy;
  }
  EXPECT_FALSE(outlives_its_ttl(broken_lock("forgets_to_renew")));
}

}  // namespace
}  // namespace lockbench::test

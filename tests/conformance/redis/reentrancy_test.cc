#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// Of another process, as far as the lock can tell: with services of its own, and a client that has
/// the same number.
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
  for (int i = 0; i < 4; ++i) {
    leases.push_back(granted(holder->try_once(bench.key())));
  }
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

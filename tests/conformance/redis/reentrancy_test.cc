#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// Two processes, as far as their locks can tell: each has services of its own, and its clients
/// are numbered from one.
struct TwoProcesses {
  explicit TwoProcesses(std::string_view strategy)
      : here(*find_strategy(strategy)),
        there(*find_strategy(strategy), shared_redis().url()),
        ours(here.client()),
        theirs(there.client()) {}
  const std::string& key() const { return here.key(); }

  Bench here, there;
  std::unique_ptr<Client> ours, theirs;
};

TEST(ReentrantLocks, OwnersOfTwoProcessesCollideWhereTheyAreThreadsNumbers) {
  TwoProcesses two("redis-reentrant");
  ASSERT_TRUE(two.ours->try_once(two.key()).lease);
  EXPECT_TRUE(two.theirs->try_once(two.key()).lease) << "declared as owner-collision";
}

TEST(ReentrantLocks, OwnersOfTwoProcessesDoNotCollideWhereTheyAreUnique) {
  TwoProcesses two("redis-reentrant-notify");
  ASSERT_TRUE(two.ours->try_once(two.key()).lease);
  EXPECT_EQ(two.theirs->try_once(two.key()).outcome, AcquireOutcome::refused);
}

TEST(ReentrantLocks, AnotherOnesLostAnswerDoesNotEndTheLock) {
  TwoProcesses two("redis-reentrant");
  const AcquireResult held = two.ours->try_once(two.key());
  ASSERT_TRUE(held.lease);
  two.theirs->faults().drop_answer(1);
  EXPECT_EQ(two.theirs->try_once(two.key()).outcome, AcquireOutcome::unknown);
  EXPECT_TRUE(RedisProbe(shared_redis().port()).exists(two.key()));
  EXPECT_EQ(two.ours->release(*held.lease), ReleaseOutcome::released);
}

class EveryReentrantLock : public testing::TestWithParam<const char*> {};

TEST_P(EveryReentrantLock, IsFreeOnlyAfterAsManyReleasesInWhateverOrder) {
  Bench bench(*find_strategy(GetParam()));
  const auto holder = bench.client();
  const auto other = bench.client();
  std::vector<Lease> leases;
  for (int i = 0; i < 4; ++i) {
    AcquireResult result = holder->try_once(bench.key());
    ASSERT_TRUE(result.lease);
    leases.push_back(*std::move(result.lease));
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
  const AcquireResult outer = holder->try_once(bench.key());
  const AcquireResult inner = holder->try_once(bench.key());
  ASSERT_TRUE(outer.lease && inner.lease);
  EXPECT_EQ(holder->release(*inner.lease), ReleaseOutcome::released);
  const TimePoint was = outer.lease->state->valid_until();
  const int before = bench.worlds().ended();
  ASSERT_TRUE(bench.worlds().await_any(before + 3));
  EXPECT_GT(outer.lease->state->valid_until(), was);
  EXPECT_FALSE(outer.lease->state->lost_at());
  EXPECT_EQ(holder->release(*outer.lease), ReleaseOutcome::released);
}

TEST_P(EveryReentrantLock, WhatGotNoAnswerIsNotTakenForAnEarlierAcquisition) {
  Bench bench(*find_strategy(GetParam()), unrenewed());
  const auto holder = bench.client();
  const auto other = bench.client();
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
  const AcquireResult held = holder->try_once(bench.key());
  ASSERT_TRUE(held.lease);
  holder->faults().drop_command(1);
  EXPECT_EQ(holder->release(*held.lease), ReleaseOutcome::failed);
  EXPECT_TRUE(is_free_after_one_more()) << "after a release that never arrived";
  holder->faults().drop_answer(1);
  holder->faults().drop_command(2);
  EXPECT_EQ(holder->try_once(bench.key()).outcome, AcquireOutcome::unknown);
  EXPECT_EQ(other->try_once(bench.key()).outcome, AcquireOutcome::refused);
  EXPECT_TRUE(is_free_after_one_more()) << "after an acquisition that could not be taken back";
  const AcquireResult outer = holder->try_once(bench.key());
  ASSERT_TRUE(outer.lease);
  holder->faults().drop_answer(1);
  EXPECT_EQ(holder->try_once(bench.key()).outcome, AcquireOutcome::unknown);
  EXPECT_EQ(holder->release(*outer.lease), ReleaseOutcome::released);
  EXPECT_TRUE(bench.becomes_free()) << "after one that was held already";
}

TEST_P(EveryReentrantLock, IsNotCalledReleasedWhileItMayBeCountedStill) {
  Bench bench(*find_strategy(GetParam()), unrenewed());
  const auto holder = bench.client();
  warm_up(*holder, bench.key());
  const AcquireResult outer = holder->try_once(bench.key());
  ASSERT_TRUE(outer.lease);
  holder->faults().drop_answer(1);
  EXPECT_EQ(holder->try_once(bench.key()).outcome, AcquireOutcome::unknown);
  holder->faults().drop_command(2);
  EXPECT_EQ(holder->release(*outer.lease), ReleaseOutcome::failed);
  EXPECT_TRUE(bench.is_held());
  warm_up(*holder, bench.key());
  EXPECT_TRUE(bench.becomes_free()) << "the next time it is taken back";
}

INSTANTIATE_TEST_SUITE_P(, EveryReentrantLock,
                         testing::Values("redis-reentrant", "redis-reentrant-notify"),
                         [](const auto& tested) { return test::test_name_of(tested.param); });

}  // namespace
}  // namespace lockbench::test

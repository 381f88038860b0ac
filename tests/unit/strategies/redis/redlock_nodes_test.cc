#include <gmock/gmock.h>

#include "tests/support/test_names.h"
#include "tests/unit/strategies/redis/redlock_test.h"

namespace lockbench::redis {
namespace {

using testing::HasSubstr;
using Failure = FakeRedis::Failure;

/// How the nodes of a quorum are distinguished and reached.
class RedlockNodesTest : public RedlockTest {};

TEST_P(RedlockNodesTest, ThatDifferInTheirDatabaseOnlyAreAllRenewed) {
  endpoints_["redis"] = {"redis://node0:1/0", "redis://node0:1/1", "redis://node0:1/2"};
  options_.renew = RenewPolicy{.kind = RenewPolicy::Kind::automatic};
  const Lease lease = client().must_acquire(900ms);
  forget_commands();
  clock_.advance(300ms);
  scheduler_->run_due();
  for (const std::size_t node : {0, 1, 2}) {
    EXPECT_THAT((*nodes_)[node].take_commands(), testing::ElementsAre(HasSubstr("renew_if_token")));
  }
}

TEST_P(RedlockNodesTest, GetALostReleaseAtTheLatestWhenTheClientIsDestroyed) {
  RedlockClient& a = client();
  const Lease lease = a.must_acquire();
  for (const std::size_t node : {0, 3}) {
    (*nodes_)[node].fail(1, Failure::request_lost);
    (*nodes_)[node].set_connect_time(30ms);
  }
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  EXPECT_EQ(held(), 2) << "no connection comes at once";
  const TimePoint begin = clock_.now();
  a.lock.reset();
  EXPECT_EQ(held(), 0);
  EXPECT_LE(clock_.now() - begin, 50ms) << "all are waited for together";
}

/// After two failures both nodes are being skipped.
TEST_P(RedlockNodesTest, AreReconnectedSideBySideWhenTheClientIsDestroyed) {
  RedlockClient& a = client();
  const Lease lease = a.must_acquire();
  for (const std::size_t node : {0, 3}) {
    (*nodes_)[node].fail(1, Failure::request_lost);
    (*nodes_)[node].fail(2, Failure::request_lost);
  }
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  for (const std::size_t node : {0, 3}) (*nodes_)[node].set_connect_time(30ms);
  const TimePoint begin = clock_.now();
  a.lock.reset();
  EXPECT_EQ(held(), 0);
  EXPECT_LE(clock_.now() - begin, 50ms);
}

TEST_P(RedlockNodesTest, ThatCannotBeReachedShareOneWait) {
  RedlockClient& a = client();
  const Lease lease = a.must_acquire();
  for (const std::size_t node : {1, 4}) {
    (*nodes_)[node].fail(1, Failure::request_lost);
    (*nodes_)[node].set_connect_time(1h);
  }
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  const TimePoint begin = clock_.now();
  a.lock.reset();
  EXPECT_LE(clock_.now() - begin, 50ms);
}

INSTANTIATE_TEST_SUITE_P(, RedlockNodesTest, testing::Values("redlock", "redlock-parallel"),
                         [](const auto& tested) { return test::test_name_of(tested.param); });

}  // namespace
}  // namespace lockbench::redis

#include <gmock/gmock.h>

#include "tests/conformance/mysql/mysql_test_store.h"

namespace lockbench::test {
namespace {

class MysqlSessions : public SqlSessions {};

/// The server ends sessions that do nothing, such as a holder's that works elsewhere.
TEST_P(MysqlSessions, AreLostWithTheLockIfTheServerEndsIdleOnes) {
  const auto own = own_store();
  MysqlProbe(own->server()).ask("SET GLOBAL wait_timeout = 3");
  HeldBench bench(kLongTtl, strategy_, *own);
  const auto waiter = bench.client();
  const AcquireResult gained = waiter->acquire(bench.key(), patience());
  ASSERT_TRUE(gained.lease) << gained.reason;
  EXPECT_EQ(bench.holder->release(bench.held), ReleaseOutcome::not_owner);
  EXPECT_TRUE(bench.held.state->lost_at());
}

TEST_P(MysqlSessions, TheWaitEndsAtTheDeadlineAlsoWithinASecond) {
  const auto waiter = bench_.client();
  for (const milliseconds longest : {milliseconds(200), milliseconds(400), milliseconds(1100)}) {
    const TimePoint begin = waiter->now();
    const AcquireResult late = waiter->acquire(bench_.key(), longest);
    EXPECT_EQ(late.outcome, AcquireOutcome::timed_out) << late.reason;
    EXPECT_GE(waiter->now() - begin, longest);
  }
  EXPECT_TRUE(eventually([] { return shared_mysql().waiting() == 0; }));
  EXPECT_EQ(bench_.holder->release(bench_.held), ReleaseOutcome::released);
  EXPECT_TRUE(waiter->try_once(bench_.key()).lease) << "the client goes on";
}

TEST_P(MysqlSessions, AFrozenServerDoesNotKeepAStoppedWaiter) {
  const auto own = own_store();
  HeldBench bench(kLongTtl, strategy_, *own, StrategyOptions{.after_stop = milliseconds(50)});
  Waiter waiter(warm_client(bench), bench.key(), 2 * kPatience);
  ASSERT_TRUE(eventually([&] { return own->waiting() == 1; }));
  ASSERT_TRUE(own->server().freeze());
  waiter.stop();
  EXPECT_TRUE(eventually([&] { return waiter.is_done(); }));
  ASSERT_TRUE(own->server().thaw());
  EXPECT_EQ(waiter.join().outcome, AcquireOutcome::unknown);
}

INSTANTIATE_TEST_SUITE_P(Of, MysqlSessions, testing::Values("mysql-get-lock", "mysql-row"),
                         [](const auto& tested) { return test_name_of(tested.param); });

TEST(MysqlSkipLocked, PollsAndDoesNotWaitAtTheServer) {
  HeldBench bench(kLongTtl, *find_strategy("mysql-skip-locked"));
  Waiter waiter(bench.client(), bench.key());
  ASSERT_TRUE(waiter.waits());
  EXPECT_EQ(shared_mysql().waiting(), 0);
  EXPECT_EQ(bench.holder->release(bench.held), ReleaseOutcome::released);
  EXPECT_TRUE(waiter.join().lease) << waiter.join().reason;
}

}  // namespace
}  // namespace lockbench::test

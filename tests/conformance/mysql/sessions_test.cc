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

/// Such as lock_wait_timeout while an administrator has locked a table, here that of the numbers.
TEST_P(MysqlSessions, AnotherLimitThanTheDeadlineIsAFailureWithItsReason) {
  ASSERT_EQ(bench_.holder->release(bench_.held), ReleaseOutcome::released);
  MysqlProbe administrator = shared_mysql().probe();
  administrator.ask(fmt::format("LOCK TABLES {}.fencing WRITE", kSchema));
  const AcquireResult ended = bench_.holder->acquire(bench_.key(), patience());
  EXPECT_EQ(ended.outcome, AcquireOutcome::failed);
  EXPECT_THAT(ended.reason, testing::HasSubstr("before the deadline"));
  administrator.ask("UNLOCK TABLES");
  EXPECT_TRUE(bench_.holder->try_once(bench_.key()).lease) << "the client goes on";
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

class MysqlLocks : public testing::TestWithParam<std::string_view> {
 protected:
  const Descriptor& strategy_ = *find_strategy(GetParam());
};

/// Those of a server that others use, too.
TEST_P(MysqlLocks, HoldWhateverTheServersDefaultsAre) {
  const auto own = own_store();
  Bench bench(strategy_, *own);
  for (const char* setting : {"sql_mode = 'ORACLE,SIMULTANEOUS_ASSIGNMENT'", "autocommit = 0",
                              "completion_type = 'CHAIN'"}) {
    MysqlProbe(own->server()).ask(fmt::format("SET GLOBAL {}", setting));
  }
  const auto holder = bench.client();
  holder->give_back(granted(holder->try_once(bench.key())));
  const Lease held = granted(holder->try_once(bench.key()));
  EXPECT_TRUE(bench.is_held());
  EXPECT_EQ(holder->release(held), ReleaseOutcome::released);
  EXPECT_FALSE(bench.is_held());
  const auto store = store_at(own->server().port());
  const std::vector<std::string> keys{bench.key()};
  ASSERT_TRUE(store->remove_keys(keys, {}));
  EXPECT_EQ(store->remove_keys(keys, {}).value_or(99), 0U) << "they are gone";
}

TEST_P(MysqlLocks, AreGrantedAtOnceAfterTheServerEndedAnIdleSession) {
  const auto own = own_store();
  MysqlProbe(own->server()).ask("SET GLOBAL wait_timeout = 2");
  Bench bench(strategy_, *own);
  const auto client = bench.client();
  client->give_back(granted(client->try_once(bench.key())));
  ASSERT_TRUE(eventually([&] { return own->other_connections() == 0; }));
  client->give_back(granted(client->try_once(bench.key())));
}

TEST_P(MysqlLocks, RefuseAKeyForWhichARowHasNoRoom) {
  Bench bench(strategy_);
  const auto client = bench.client();
  const std::string longest = bench.key() + std::string(700 - bench.key().size(), 'k');
  client->give_back(granted(client->try_once(longest)));
  const AcquireResult longer = client->try_once(longest + "k");
  if (strategy_.name == "mysql-get-lock") {
    EXPECT_TRUE(longer.lease) << "it is in no row";
    return;
  }
  for (const AcquireResult& refused : {longer, client->try_once("")}) {
    EXPECT_EQ(refused.outcome, AcquireOutcome::failed);
    EXPECT_THAT(refused.reason, testing::HasSubstr("a key must have 1 to 700 bytes"));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, MysqlLocks,
                         testing::Values("mysql-get-lock", "mysql-row", "mysql-skip-locked",
                                         "mysql-lease"),
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

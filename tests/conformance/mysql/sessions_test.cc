#include <gmock/gmock.h>

#include <future>

#include "strategies/registry.h"
#include "tests/conformance/common/waiter.h"
#include "tests/conformance/mysql/mysql_test_store.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// The locks that wait in the server's queue and live in a session.
class MysqlSessions : public testing::TestWithParam<const char*> {
 protected:
  /// A waiter that has its connection and database before it starts, so that only the wait is left.
  std::unique_ptr<Client> warm_client() {
    std::unique_ptr<Client> client = bench_.client();
    warm_up(*client, bench_.key() + ":warm");
    return client;
  }

  const Descriptor& strategy_ = *find_strategy(GetParam());
  HeldBench bench_{kLongTtl, strategy_};
};

TEST_P(MysqlSessions, DieWithTheirConnectionAndTheNextWaiterIsGranted) {
  Waiter waiter(warm_client(), bench_.key());
  ASSERT_TRUE(eventually([] { return shared_mysql().waiting() == 1; }));
  shared_mysql().take_away({bench_.key()});
  const Lease next = granted(waiter.join());
  EXPECT_FALSE(bench_.held.state->lost_at()) << "nobody has told the holder yet";
  EXPECT_EQ(bench_.holder->release(bench_.held), ReleaseOutcome::not_owner);
  EXPECT_TRUE(bench_.held.state->lost_at());
  EXPECT_TRUE(bench_.is_held());
  EXPECT_GT(*next.fencing, *bench_.held.fencing);
  EXPECT_EQ(waiter.client().release(next), ReleaseOutcome::released);
}

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

/// Two clients take two locks in opposite orders. The server sees the cycle, and ends one wait; of
/// rows, with the whole transaction.
TEST_P(MysqlSessions, ADeadlockThatTheServerBreaksIsSaidAndBothGoOn) {
  const bool rows = strategy_.traits.released_together;
  const std::string first = bench_.key(), second = bench_.key() + ":second";
  const auto other = warm_client();
  const Lease seconds_held = granted(other->try_once(second));
  // As a section does, it gives back what it holds when it does not get all.
  const auto take = [rows](Client& client, const std::string& wanted, const Lease& held) {
    AcquireResult result = client.acquire(wanted, patience());
    if (!result.lease) {
      EXPECT_EQ(held.state->lost_at().has_value(), rows);
      EXPECT_EQ(client.release(held), rows ? ReleaseOutcome::not_owner : ReleaseOutcome::released);
    }
    return result;
  };
  auto waiting = std::async(std::launch::async, [&] { return take(*other, first, seconds_held); });
  ASSERT_TRUE(eventually([] { return shared_mysql().waiting() == 1; }));
  const AcquireResult ours = take(*bench_.holder, second, bench_.held), theirs = waiting.get();
  ASSERT_NE(ours.deadlock, theirs.deadlock) << ours.reason << theirs.reason;
  EXPECT_EQ((ours.deadlock ? ours : theirs).outcome, AcquireOutcome::timed_out);
  if (ours.deadlock) {
    ASSERT_TRUE(theirs.lease) << theirs.reason;
    EXPECT_EQ(other->release(*theirs.lease), ReleaseOutcome::released);
    EXPECT_EQ(other->release(seconds_held), ReleaseOutcome::released);
  } else {
    ASSERT_TRUE(ours.lease) << ours.reason;
    EXPECT_EQ(bench_.holder->release(*ours.lease), ReleaseOutcome::released);
    EXPECT_EQ(bench_.holder->release(bench_.held), ReleaseOutcome::released);
  }
  EXPECT_TRUE(bench_.becomes_free());
}

/// A number that was drawn in an open transaction may not be on disk.
TEST_P(MysqlSessions, FencingNumbersGrowOverACrashOfTheServer) {
  const auto own = own_store();
  HeldBench bench(kLongTtl, strategy_, *own);
  ASSERT_TRUE(own->server().restart(true));
  const Lease next = granted(bench.client()->acquire(bench.key(), patience()));
  EXPECT_GT(*next.fencing, *bench.held.fencing);
}

TEST_P(MysqlSessions, AFrozenServerDoesNotKeepAStoppedWaiter) {
  const auto own = own_store();
  HeldBench bench(kLongTtl, strategy_, *own, StrategyOptions{.after_stop = milliseconds(50)});
  std::unique_ptr<Client> client = bench.client();
  warm_up(*client, bench.key() + ":warm");
  Waiter waiter(std::move(client), bench.key(), 2 * kPatience);
  ASSERT_TRUE(eventually([&] { return own->waiting() == 1; }));
  ASSERT_TRUE(own->server().freeze());
  waiter.stop();
  EXPECT_TRUE(eventually([&] { return waiter.is_done(); }));
  ASSERT_TRUE(own->server().thaw());
  EXPECT_EQ(waiter.join().outcome, AcquireOutcome::unknown);
}

INSTANTIATE_TEST_SUITE_P(Of, MysqlSessions, testing::Values("mysql-get-lock", "mysql-row"),
                         [](const auto& tested) { return test_name_of(tested.param); });

TEST(MysqlRow, AWaitInVainKeepsTheOtherLocksOfItsClient) {
  Bench bench(*find_strategy("mysql-row"));
  const auto holder = bench.client(), other = bench.client();
  const Lease taken = granted(other->try_once(bench.key() + ":taken"));
  const Lease held = granted(holder->try_once(bench.key()));
  EXPECT_EQ(holder->try_once(taken.key).outcome, AcquireOutcome::refused);
  EXPECT_EQ(holder->acquire(taken.key, milliseconds(50)).outcome, AcquireOutcome::timed_out);
  EXPECT_TRUE(bench.is_held());
  EXPECT_EQ(holder->release(held), ReleaseOutcome::released);
  EXPECT_FALSE(bench.is_held());
}

TEST(MysqlSkipLocked, PollsAndDoesNotWaitAtTheServer) {
  HeldBench bench(kLongTtl, *find_strategy("mysql-skip-locked"));
  Waiter waiter(bench.client(), bench.key());
  ASSERT_TRUE(waiter.waits());
  EXPECT_EQ(shared_mysql().waiting(), 0);
  EXPECT_EQ(bench.holder->release(bench.held), ReleaseOutcome::released);
  EXPECT_TRUE(waiter.join().lease) << waiter.join().reason;
}

TEST(MysqlDatabase, IsMadeByManyAtOnce) {
  constexpr int kClients = 24;
  for (const char* name : {"mysql-get-lock", "mysql-row", "mysql-lease"}) {
    Bench bench(*find_strategy(name));
    std::vector<std::unique_ptr<Client>> clients;
    clients.reserve(kClients);
    for (int i = 0; i < kClients; ++i) clients.push_back(bench.client());
    std::vector<AcquireResult> results(kClients);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < clients.size(); ++i) {
        threads.emplace_back(
            [&, i] { results[i] = clients[i]->try_once(fmt::format("{}:{}", bench.key(), i)); });
      }
    }
    for (const AcquireResult& result : results) EXPECT_TRUE(result.lease) << result.reason;
  }
}

TEST(MysqlDatabase, IsAllThatStaysOfARunUntilItIsRemoved) {
  const auto tables = [] {
    return shared_mysql().probe().ask(
        "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.TABLES WHERE "
        "TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')");
  };
  const auto before = tables();
  Bench bench(*find_strategy("mysql-lease"));
  {
    const auto client = bench.client();
    ASSERT_TRUE(client->try_once(bench.key()).lease);
  }
  EXPECT_THAT(tables(),
              testing::Each(testing::AnyOf(testing::StartsWith(std::string(kDatabase) + "."),
                                           testing::AnyOfArray(before))));
  EXPECT_THAT(tables(), testing::Contains(testing::StartsWith(std::string(kDatabase) + ".")));
  const auto store = store_at(shared_mysql().server().port());
  const std::vector<std::string> keys = {bench.key(), "lockbench:another:{key}"};
  EXPECT_EQ(store->remove_keys(keys, {}).value_or(99), 1U);
  EXPECT_EQ(store->remove_run("conformance", {}).value_or(99), 1U);
  EXPECT_THAT(tables(), testing::IsEmpty());
  EXPECT_EQ(store->remove_run("conformance", {}).value_or(99), 0U) << "it may have gone before";
}

TEST(MysqlDatabase, OfARunThatWasKilledIsDroppedByALaterRunAfterADay) {
  MysqlProbe probe = shared_mysql().probe();
  const std::string old = "lockbench_20200101t000000z_aaaaaa",
                    fresh = "lockbench_" +
                            probe.value("SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y%m%dt%H%i%sz')") +
                            "_bbbbbb",
                    used = "lockbench_20200101t000000z_cccccc", others = "lockbench_of_another";
  for (const std::string& name : {old, fresh, used, others}) probe.ask("CREATE DATABASE " + name);
  MysqlProbe session = shared_mysql().probe();
  session.ask("USE " + used);
  const auto store = store_at(shared_mysql().server().port());
  EXPECT_EQ(store->remove_run("20260101T000000Z-dddddd", {}).value_or(99), 0U);
  EXPECT_THAT(probe.ask("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME "
                        "LIKE 'lockbench%' AND SCHEMA_NAME <> 'lockbench_conformance'"),
              testing::UnorderedElementsAre(fresh, used, others));
  for (const std::string& name : {fresh, used, others}) probe.ask("DROP DATABASE " + name);
}

}  // namespace
}  // namespace lockbench::test

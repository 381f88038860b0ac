#include "tests/conformance/common/sql_sessions.h"

#include <fmt/chrono.h>
#include <gmock/gmock.h>

#include <future>

namespace lockbench::test {
namespace {

TEST_P(SqlSessions, DieWithTheirConnectionAndTheNextWaiterIsGranted) {
  Waiter waiter(warm_client(bench_), bench_.key());
  ASSERT_TRUE(eventually([] { return shared_store().waiting() == 1; }));
  shared_store().take_away({bench_.key()});
  const Lease next = granted(waiter.join());
  EXPECT_FALSE(bench_.held.state->lost_at()) << "nobody has told the holder yet";
  EXPECT_EQ(bench_.holder->release(bench_.held), ReleaseOutcome::not_owner);
  EXPECT_TRUE(bench_.held.state->lost_at());
  EXPECT_TRUE(bench_.is_held());
  EXPECT_GT(*next.fencing, *bench_.held.fencing);
  EXPECT_EQ(waiter.client().release(next), ReleaseOutcome::released);
}

/// Two clients take two locks in opposite orders. The server sees the cycle, and ends one wait; of
/// MariaDB's rows, with the whole transaction.
TEST_P(SqlSessions, ADeadlockThatTheServerBreaksIsSaidAndBothGoOn) {
  const bool all_end = strategy_.backend == "mysql" && strategy_.traits.released_together;
  const std::string first = bench_.key(), second = bench_.key() + ":second";
  const auto other = warm_client(bench_);
  const Lease seconds_held = granted(other->try_once(second));
  // As a section does, it gives back what it holds when it does not get all.
  const auto take = [all_end](Client& client, const std::string& wanted, const Lease& held) {
    AcquireResult result = client.acquire(wanted, patience());
    if (!result.lease) {
      EXPECT_EQ(held.state->lost_at().has_value(), all_end);
      EXPECT_EQ(client.release(held),
                all_end ? ReleaseOutcome::not_owner : ReleaseOutcome::released);
    }
    return result;
  };
  auto waiting = std::async(std::launch::async, [&] { return take(*other, first, seconds_held); });
  ASSERT_TRUE(eventually([] { return shared_store().waiting() == 1; }));
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

TEST_P(SqlSessions, AWaitInVainKeepsTheOtherLocksOfItsClient) {
  const auto other = bench_.client();
  const Lease taken = granted(other->try_once(bench_.key() + ":taken"));
  EXPECT_EQ(bench_.holder->try_once(taken.key).outcome, AcquireOutcome::refused);
  EXPECT_EQ(bench_.holder->acquire(taken.key, milliseconds(50)).outcome, AcquireOutcome::timed_out);
  EXPECT_TRUE(bench_.is_held());
  EXPECT_EQ(bench_.holder->release(bench_.held), ReleaseOutcome::released);
  EXPECT_FALSE(bench_.is_held());
}

/// A number that was drawn in an open transaction may not be on disk.
TEST_P(SqlSessions, FencingNumbersGrowOverACrashOfTheServer) {
  const auto own = own_store();
  HeldBench bench(kLongTtl, strategy_, *own);
  ASSERT_TRUE(own->server().restart(true));
  const Lease next = granted(bench.client()->acquire(bench.key(), patience()));
  EXPECT_GT(*next.fencing, *bench.held.fencing);
}

// Most stores have none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SqlSessions);
INSTANTIATE_TEST_SUITE_P(
    Of, SqlSessions,
    testing::ValuesIn(of_tested_store({"postgres-advisory", "postgres-advisory-xact",
                                       "postgres-row", "mysql-get-lock", "mysql-row"})),
    [](const auto& tested) { return test_name_of(tested.param); });

/// The schema of a run.
class SqlSchema : public testing::TestWithParam<std::string_view> {
 protected:
  Bench bench_{*find_strategy(GetParam())};
};

TEST_P(SqlSchema, IsMadeByManyAtOnce) {
  constexpr int kClients = 24;
  std::vector<std::unique_ptr<Client>> clients;
  clients.reserve(kClients);
  for (int i = 0; i < kClients; ++i) clients.push_back(bench_.client());
  std::vector<AcquireResult> results(kClients);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      threads.emplace_back(
          [&, i] { results[i] = clients[i]->try_once(fmt::format("{}:{}", bench_.key(), i)); });
    }
  }
  for (const AcquireResult& result : results) EXPECT_TRUE(result.lease) << result.reason;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SqlSchema);
INSTANTIATE_TEST_SUITE_P(Of, SqlSchema,
                         testing::ValuesIn(of_tested_store(
                             {"postgres-advisory", "postgres-advisory-xact", "postgres-row",
                              "postgres-lease", "mysql-get-lock", "mysql-row", "mysql-lease"})),
                         [](const auto& tested) { return test_name_of(tested.param); });

/// What a run leaves in the database.
class SqlLeftovers : public SqlSchema {
 protected:
  const std::unique_ptr<Store> store_ = store_at(shared_store().server().port());
};

TEST_P(SqlLeftovers, AreOfItsSchemaOnlyUntilTheRunIsRemoved) {
  const auto tables = [] {
    return shared_database().ask(
        "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.TABLES WHERE "
        "TABLE_SCHEMA NOT IN ('pg_catalog', 'information_schema', 'mysql', 'sys', "
        "'performance_schema')");
  };
  const auto before = tables();  // those of killed runs
  {
    const auto client = bench_.client();
    ASSERT_TRUE(client->try_once(bench_.key()).lease);
  }
  const auto ours = testing::StartsWith(std::string(kSchema) + ".");
  EXPECT_THAT(tables(), testing::Each(testing::AnyOf(ours, testing::AnyOfArray(before))));
  EXPECT_THAT(tables(), testing::Contains(ours));
  const std::vector<std::string> keys = {bench_.key(), "lockbench:another:{key}"};
  EXPECT_EQ(store_->remove_keys(keys, {}).value_or(99), 1U);
  EXPECT_EQ(store_->remove_run("conformance", {}).value_or(99), 1U);
  EXPECT_THAT(tables(), testing::IsEmpty());
  EXPECT_EQ(store_->remove_run("conformance", {}).value_or(99), 0U) << "it may have gone before";
}

TEST_P(SqlLeftovers, OfARunThatWasKilledAreDroppedByALaterRunAfterADay) {
  const std::string old = "20200101T000000Z-4f3a9c", alive = "20200101T000000Z-4f3a9d";
  const std::string fresh =
      fmt::format("{:%Y%m%dT%H%M%SZ}-4f3a9c", fmt::gmtime(make_system_env(0)->wall_now()));
  const std::string others = "lockbench_of_somebody_else";
  const auto schemas = [] {
    return shared_database().ask(
        "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'lockbench%'");
  };
  for (const std::string& name : {schema_of_run(old), schema_of_run(fresh), others}) {
    shared_database().ask("CREATE SCHEMA " + name);
  }
  const auto client = bench_.client();
  ASSERT_TRUE(client->try_once(fmt::format("lockbench:{}:{{k}}", alive)).lease);
  EXPECT_EQ(store_->remove_run("conformance", {}).value_or(99), 0U);
  EXPECT_THAT(schemas(),
              testing::UnorderedElementsAre(schema_of_run(alive), schema_of_run(fresh), others));
  for (const std::string& run : {alive, fresh}) {
    EXPECT_EQ(store_->remove_run(run, {}).value_or(99), 1U);
  }
  EXPECT_THAT(schemas(), testing::ElementsAre(others));
  shared_database().ask("DROP SCHEMA " + others);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SqlLeftovers);
INSTANTIATE_TEST_SUITE_P(Of, SqlLeftovers,
                         testing::ValuesIn(of_tested_store({"postgres-lease", "mysql-lease"})),
                         [](const auto& tested) { return test_name_of(tested.param); });

}  // namespace
}  // namespace lockbench::test

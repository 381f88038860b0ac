#include <gmock/gmock.h>

#include "deployment/failure.h"
#include "strategies/registry.h"
#include "tests/conformance/common/waiter.h"
#include "tests/conformance/postgres/postgres_test_store.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The lock belongs to its session.
class BehindAPooler : public testing::TestWithParam<std::string_view> {
 protected:
  static std::unique_ptr<testbed::Server> pooler(const std::string& mode, int sessions = 20) {
    shared_postgres().clear();
    return deployment::need(testbed::start_pgbouncer(shared_testbed(),
                                                     shared_postgres().server().port(),
                                                     {.pool_mode = mode, .pool_size = sessions}));
  }
  const Descriptor& strategy_ = *find_strategy(GetParam());
};

TEST_P(BehindAPooler, OfTransactionsNothingIsGrantedAndTheReasonIsPlain) {
  for (const int sessions : {1, 20}) {
    const auto server = pooler("transaction", sessions);
    Bench bench(strategy_, server->url());
    const auto client = bench.client();
    for (int i = 0; i < 2; ++i) {
      const AcquireResult result = client->try_once(bench.key());
      EXPECT_EQ(result.outcome, AcquireOutcome::refused);
      EXPECT_THAT(result.reason,
                  AllOf(HasSubstr("transaction pooler"), HasSubstr("connect directly"),
                        HasSubstr(std::to_string(server->port()))));
    }
    EXPECT_EQ(shared_postgres().keys(), std::vector<std::string>()) << "nothing is left behind";
  }
}

INSTANTIATE_TEST_SUITE_P(, BehindAPooler,
                         testing::Values("postgres-advisory", "postgres-row",
                                         "postgres-skip-locked"),
                         [](const auto& tested) { return test_name_of(tested.param); });

/// Where the pooler has no room for the connection that would find it out.
TEST(APoolerOfTransactions, IsToldByAPreparedStatementOfAnotherClient) {
  shared_postgres().clear();
  const auto server = deployment::need(
      testbed::start_pgbouncer(shared_testbed(), shared_postgres().server().port(),
                               {.pool_mode = "transaction", .pool_size = 1, .max_clients = 1}));
  PostgresProbe(server->url()).ask("PREPARE lockbench_0 AS SELECT 1");
  Bench bench(*find_strategy("postgres-advisory"), server->url());
  const auto client = bench.unconnected_client();
  AcquireResult result;
  ASSERT_TRUE(eventually([&] {
    result = client->try_once(bench.key());
    return result.reason.find("no more connections") == std::string::npos;
  }));
  EXPECT_EQ(result.outcome, AcquireOutcome::refused);
  EXPECT_THAT(result.reason, HasSubstr("transaction pooler"));
}

/// A lease table is the design for a transaction pooler: each statement may go to another session.
TEST(ALeaseTable, WorksBehindATransactionPoolerAndIsRenewedThere) {
  shared_postgres().clear();
  const auto server =
      deployment::need(testbed::start_pgbouncer(shared_testbed(), shared_postgres().server().port(),
                                                {.pool_mode = "transaction", .pool_size = 3}));
  Bench bench(*find_strategy("postgres-lease"), server->url(), renewed_every(milliseconds(20)));
  const auto holder = bench.client(), other = bench.client();
  PostgresProbe one(server->url()), two(server->url());
  const Lease held = granted(holder->try_once(bench.key(), seconds(10)));
  one.ask("BEGIN");  // takes the session that was used last
  EXPECT_EQ(other->try_once(bench.key()).outcome, AcquireOutcome::refused);
  const TimePoint granted_until = held.state->valid_until();
  ASSERT_TRUE(bench.worlds().await("UPDATE", 2, patience()));
  EXPECT_TRUE(eventually([&] { return held.state->valid_until() > granted_until; }));
  two.ask("BEGIN");
  EXPECT_EQ(holder->release(held), ReleaseOutcome::released);
  EXPECT_TRUE(other->try_once(bench.key()).lease);
  one.ask("COMMIT");
  two.ask("COMMIT");
}

/// So is a lock of a transaction, which has a session for itself.
TEST(AnAdvisoryLockOfATransaction, WorksBehindATransactionPoolerAndIsWaitedForThere) {
  shared_postgres().clear();
  const auto server =
      deployment::need(testbed::start_pgbouncer(shared_testbed(), shared_postgres().server().port(),
                                                {.pool_mode = "transaction", .pool_size = 5}));
  Bench bench(*find_strategy("postgres-advisory-xact"), server->url());
  const auto holder = bench.client(), other = bench.client();
  PostgresProbe one(server->url());
  const Lease held = granted(holder->try_once(bench.key()));
  const Lease further = granted(holder->try_once(bench.key() + ":further"));
  one.ask("BEGIN");
  EXPECT_EQ(other->try_once(bench.key()).outcome, AcquireOutcome::refused);
  EXPECT_EQ(other->acquire(bench.key(), milliseconds(300)).outcome, AcquireOutcome::timed_out);
  Waiter stopped(bench.client(), bench.key());
  ASSERT_TRUE(eventually([] { return shared_postgres().waiting() == 1; }));
  stopped.stop();
  EXPECT_EQ(stopped.join().outcome, AcquireOutcome::abandoned) << stopped.join().reason;
  EXPECT_TRUE(eventually([] { return shared_postgres().waiting() == 0; }));
  for (const Lease& lease : {further, held}) {
    EXPECT_EQ(holder->release(lease), ReleaseOutcome::released);
  }
  EXPECT_TRUE(other->try_once(bench.key()).lease);
  one.ask("COMMIT");
}

/// The extra session for the pooler check may not be available.
TEST(BehindAPoolerOfSessions, TheLastOneIsEnough) {
  const auto server =
      deployment::need(testbed::start_pgbouncer(shared_testbed(), shared_postgres().server().port(),
                                                {.pool_mode = "session", .pool_size = 1}));
  Bench bench(*find_strategy("postgres-advisory"), server->url());
  const AcquireResult held = bench.client()->acquire(bench.key(), patience());
  EXPECT_TRUE(held.lease) << held.reason;
}

TEST(BehindAPoolerOfSessions, WhoWaitsForASessionIsToldThatItIsNotTheLock) {
  const Descriptor& advisory = *find_strategy("postgres-advisory");
  const auto server =
      deployment::need(testbed::start_pgbouncer(shared_testbed(), shared_postgres().server().port(),
                                                {.pool_mode = "session", .pool_size = 1}));
  Bench patient(advisory, server->url());
  const auto holder = patient.client();
  const Lease held = granted(holder->try_once(patient.key()));
  Bench hurried(advisory, server->url(), {.command_timeout = milliseconds(300)});
  const AcquireResult other = hurried.unconnected_client()->try_once("lockbench:another:{lock}");
  EXPECT_FALSE(other.lease);
  EXPECT_THAT(other.reason, HasSubstr("a pooler whose sessions are all in use"));
}

}  // namespace
}  // namespace lockbench::test

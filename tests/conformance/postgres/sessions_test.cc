#include <gmock/gmock.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <stop_token>

#include "strategies/postgres/client/endpoint.h"
#include "tests/conformance/postgres/postgres_test_store.h"

namespace lockbench::test {
namespace {

class PostgresSessions : public SqlSessions {};

/// The wait times out and the lock is granted while the waiting server process is stopped: on
/// resuming it sees both, and answers that it was too late.
TEST_P(PostgresSessions, AGrantThatTheServerSeesTooLateIsNotKept) {
  Waiter waiter(warm_client(bench_), bench_.key(), seconds(3));
  ASSERT_TRUE(eventually([] { return shared_postgres().waiting() == 1; }));
  const auto waiting = shared_postgres().probe().ask(
      "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'lockbench%' AND "
      "wait_event_type = 'Lock'");
  ASSERT_EQ(waiting.size(), 1U);
  const pid_t process = std::stoi(waiting.front());
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
  EXPECT_EQ(bench_.holder->release(bench_.held), ReleaseOutcome::released);
  // The client's last resort, after its deadline.
  EXPECT_TRUE(eventually([&] { return waiter.has_sent("pg_cancel_backend"); }));
  ASSERT_EQ(::kill(process, SIGCONT), 0);
  EXPECT_EQ(waiter.join().outcome, AcquireOutcome::timed_out) << waiter.join().reason;
  EXPECT_TRUE(bench_.becomes_free());
  EXPECT_TRUE(waiter.client().try_once(bench_.key()).lease) << "the client goes on";
}

/// The time until the kernel's first keepalive on each connection to the port, from /proc/net/tcp.
std::vector<Duration> keepalives_to(std::uint16_t port) {
  std::vector<Duration> found;
  std::ifstream file("/proc/net/tcp");
  const std::string peer = fmt::format("0100007F:{:04X}", port);
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer;
    words >> number >> local >> remote >> state >> queues >> timer;
    // 02: the keepalive timer.
    if (remote != peer || state != "01" || !timer.starts_with("02:")) continue;
    const double ticks = static_cast<double>(std::stoul(timer.substr(3), nullptr, 16));
    found.push_back(
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(ticks * tick)));
  }
  return found;
}

/// Within the five minutes after which routers forget a connection; the kernel's default is two
/// hours.
TEST_P(PostgresSessions, AreKeptAliveWhileTheyAreIdle) {
  const std::uint16_t port = shared_postgres().server().port();
  EXPECT_TRUE(eventually([&] {
    const auto first = keepalives_to(port);
    return std::count_if(first.begin(), first.end(),
                         [](Duration left) { return left <= std::chrono::minutes(1); }) > 0;
  }));
}

INSTANTIATE_TEST_SUITE_P(Of, PostgresSessions,
                         testing::Values("postgres-advisory", "postgres-advisory-xact",
                                         "postgres-row"),
                         [](const auto& tested) { return test_name_of(tested.param); });

class PostgresNumbers : public testing::TestWithParam<std::string_view> {};

/// A commit that need not be on disk would not wait for a standby either.
TEST_P(PostgresNumbers, AreCommittedToDiskForAUserWhoseDefaultIsNot) {
  const auto own = own_store();
  const auto administer = [&](const std::string& sql) {
    return PostgresProbe(own->server().url()).ask(sql);
  };
  administer(fmt::format("ALTER ROLE {} SET synchronous_commit = off", testbed::kSuperuser));
  Bench bench(*find_strategy(GetParam()), *own);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  administer("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  administer("SELECT pg_reload_conf()");
  // A sequence writes each 33rd number only.
  const std::jthread sections([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const AcquireResult taken = client->acquire(bench.key(), patience());
      if (taken.lease) client->release(*taken.lease);
    }
  });
  EXPECT_TRUE(eventually([&] {
    return administer(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND "
               "application_name LIKE 'lockbench%'") != std::vector<std::string>{"0"};
  }));
  administer("ALTER SYSTEM RESET synchronous_standby_names");
  administer("SELECT pg_reload_conf()");
}

INSTANTIATE_TEST_SUITE_P(Of, PostgresNumbers,
                         testing::Values("postgres-advisory", "postgres-advisory-unchecked",
                                         "postgres-advisory-xact", "postgres-row"),
                         [](const auto& tested) { return test_name_of(tested.param); });

/// The server ends transactions that do nothing, such as a holder's that works elsewhere.
TEST(PostgresTransactions, AreLostWithTheLockIfTheServerEndsIdleOnes) {
  const auto own = own_store();
  PostgresProbe(own->server().url())
      .ask(fmt::format("ALTER ROLE {} SET idle_in_transaction_session_timeout = '3s'",
                       testbed::kSuperuser));
  for (const char* name : {"postgres-row", "postgres-advisory-xact"}) {
    HeldBench bench(kLongTtl, *find_strategy(name), *own);
    ASSERT_TRUE(eventually([&] { return own->other_connections() == 0; })) << name;
    EXPECT_EQ(bench.holder->release(bench.held), ReleaseOutcome::not_owner) << name;
    EXPECT_TRUE(bench.held.state->lost_at()) << name;
  }
}

/// The answer with the grant is lost together with its connection, as the client is stopped.
AcquireResult acquire_and_lose_the_answer() {
  Bench bench(*find_strategy("postgres-lease"));
  const auto client = bench.client();
  warm_up(*client, bench.key());
  std::stop_source stop;
  client->faults().next_answer_is_late({}, [&] { stop.request_stop(); });
  client->faults().drop_answer(1);
  return client->acquire(bench.key(), patience(), kLongTtl, stop.get_token());
}

TEST(LostAnswers, AreCleanedUpOnANewConnectionAlsoAfterAStop) {
  EXPECT_EQ(acquire_and_lose_the_answer().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(shared_postgres().keys(), std::vector<std::string>());
}

TEST(PostgresKeys, WithAZeroByteAreRefusedAndTheClientGoesOn) {
  for (const char* name :
       {"postgres-row", "postgres-lease", "postgres-table-lock", "postgres-observed-lease"}) {
    HeldBench bench(kLongTtl, *find_strategy(name));
    const AcquireResult refused = bench.holder->try_once(bench.key() + std::string("\0b", 2));
    EXPECT_EQ(refused.outcome, AcquireOutcome::failed) << name;
    EXPECT_THAT(refused.reason, testing::HasSubstr("must not have a zero byte"));
    EXPECT_TRUE(bench.is_held());
    EXPECT_EQ(bench.holder->release(bench.held), ReleaseOutcome::released) << name;
  }
}

/// In one transaction, as in applications.
TEST(PostgresRow, LocksOfAClientAreFreeAfterTheLastRelease) {
  Bench bench(*find_strategy("postgres-row"));
  const auto holder = bench.client(), other = bench.client();
  const std::string first = bench.key(), second = bench.key() + ":second";
  const Lease one = granted(holder->try_once(first)), two = granted(holder->try_once(second));
  EXPECT_EQ(shared_postgres().probe().ask(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"),
            std::vector<std::string>{"1"});
  EXPECT_EQ(holder->release(two), ReleaseOutcome::released);
  EXPECT_EQ(other->try_once(second).outcome, AcquireOutcome::refused);
  const Lease third = granted(holder->try_once(bench.key() + ":third"));
  EXPECT_EQ(holder->release(one), ReleaseOutcome::released);
  EXPECT_EQ(holder->release(third), ReleaseOutcome::released);
  for (const std::string& key : {first, second}) EXPECT_TRUE(other->try_once(key).lease);
}

TEST(PostgresRow, RowsOfFurtherLocksAreMadeOnOneMoreConnection) {
  Bench bench(*find_strategy("postgres-row"));
  const auto holder = bench.client();
  const auto sessions = [] {
    return shared_postgres().probe().ask(
        "SELECT pid FROM pg_stat_activity WHERE application_name = $1 ORDER BY pid", {kSchema});
  };
  std::vector<Lease> held{granted(holder->try_once(bench.key())),
                          granted(holder->try_once(bench.key() + ":second"))};
  const auto connected = sessions();
  held.push_back(granted(holder->try_once(bench.key() + ":third")));
  // Those of earlier tests may end meanwhile.
  EXPECT_THAT(sessions(), testing::IsSubsetOf(connected));
  EXPECT_GE(sessions().size(), 2U);
  for (const Lease& lease : held) holder->release(lease);
}

TEST(PostgresLease, IsTakenAwayByAClockThatIsAheadOnlyIfClientsClocksCount) {
  for (const bool of_clients : {false, true}) {
    Bench bench(*find_strategy(of_clients ? "postgres-lease-client-clock" : "postgres-lease"));
    const auto holder = bench.client(), ahead = bench.client();
    const Lease held = granted(holder->try_once(bench.key(), seconds(60)));
    ahead->faults().skew_wall_clock(seconds(61));
    EXPECT_EQ(ahead->try_once(bench.key()).lease.has_value(), of_clients);
    EXPECT_EQ(holder->release(held),
              of_clients ? ReleaseOutcome::not_owner : ReleaseOutcome::released);
  }
}

TEST(PostgresLease, IsTakenForAtLeastAsLongAsAsked) {
  constexpr seconds kAtLeast{30};
  Bench bench(*find_strategy("postgres-lease"), StrategyOptions{.lock_at_least = kAtLeast});
  const auto holder = bench.client(), other = bench.client();
  const Lease held = granted(holder->try_once(bench.key(), seconds(60)));
  EXPECT_EQ(holder->release(held), ReleaseOutcome::released);
  EXPECT_EQ(other->try_once(bench.key()).outcome, AcquireOutcome::refused);
  const auto left = shared_postgres().probe().ask(
      fmt::format("SELECT (lock_until - locked_at)::text FROM {}.lease", kSchema));
  EXPECT_THAT(left, testing::ElementsAre("00:00:30"));
}

TEST(PostgresLease, IsRenewedByATimerUntilItHasAnotherOwner) {
  Bench bench(*find_strategy("postgres-lease"), renewed_every(milliseconds(20)));
  const auto holder = bench.client();
  const Lease kept = granted(holder->try_once(bench.key(), seconds(10)));
  const Lease lost = granted(holder->try_once(bench.key() + ":\"{lost}", seconds(10)));
  shared_postgres().probe().ask(
      fmt::format("UPDATE {}.lease SET owner = 'another' WHERE key LIKE '%lost}}'", kSchema));
  EXPECT_TRUE(eventually([&] { return lost.state->lost_at().has_value(); }));
  const TimePoint was = kept.state->valid_until();
  EXPECT_TRUE(eventually([&] { return kept.state->valid_until() > was; }));
  EXPECT_FALSE(kept.state->lost_at());
  EXPECT_EQ(holder->release(kept), ReleaseOutcome::released);
}

/// Advisory locks granted by a statement that then failed, as it could not draw a fencing number.
class AdvisoryErrors : public testing::TestWithParam<milliseconds> {
 protected:
  AcquireResult acquire_in_error(const std::string& key) {
    PostgresProbe probe = shared_postgres().probe();
    probe.ask(fmt::format("SELECT setval('{}.fencing', 1000)", kSchema));
    probe.ask(fmt::format("ALTER SEQUENCE {}.fencing MAXVALUE 1000", kSchema));
    AcquireResult result = client_->acquire(key, GetParam());
    probe.ask(fmt::format("ALTER SEQUENCE {}.fencing NO MAXVALUE", kSchema));
    EXPECT_EQ(result.outcome, AcquireOutcome::failed);
    EXPECT_THAT(result.reason, testing::HasSubstr("maximum value of sequence"));
    return result;
  }

  Bench bench_{*find_strategy("postgres-advisory")};
  std::unique_ptr<Client> client_ = bench_.client();
  std::unique_ptr<Client> other_ = bench_.client();
};

TEST_P(AdvisoryErrors, LeaveNoLockThatNobodyHolds) {
  warm_up(*client_, bench_.key());
  acquire_in_error(bench_.key());
  EXPECT_TRUE(bench_.becomes_free());
  EXPECT_TRUE(client_->try_once(bench_.key() + ":1").lease) << "the client goes on";
}

TEST_P(AdvisoryErrors, DoNotEndTheOtherLocksOfTheirSession) {
  const Lease held = granted(client_->try_once(bench_.key() + ":1"));
  acquire_in_error(bench_.key());
  EXPECT_TRUE(bench_.becomes_free());
  acquire_in_error(bench_.key() + ":1");
  EXPECT_EQ(other_->try_once(bench_.key() + ":1").outcome, AcquireOutcome::refused);
  EXPECT_FALSE(held.state->lost_at());
  EXPECT_EQ(client_->release(held), ReleaseOutcome::released);
  EXPECT_TRUE(other_->try_once(bench_.key() + ":1").lease) << "however often it was granted";
}

/// Although the server would free every lock of its session on that key.
TEST(AdvisoryLeases, GiveALockBackOnce) {
  Bench bench(*find_strategy("postgres-advisory"));
  const auto client = bench.client();
  const Lease spent = granted(client->try_once(bench.key()));
  ASSERT_EQ(client->release(spent), ReleaseOutcome::released);
  const Lease held = granted(client->try_once(bench.key()));
  EXPECT_EQ(client->release(spent), ReleaseOutcome::not_owner);
  EXPECT_TRUE(bench.is_held()) << "another lease's lock was freed";
  EXPECT_EQ(client->release(held), ReleaseOutcome::released);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutPatience, AdvisoryErrors,
                         testing::Values(milliseconds(0), milliseconds(5000)));

}  // namespace
}  // namespace lockbench::test

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "deployment/failure.h"
#include "testbed/servers/kinds.h"
#include "tests/integration/watch/sightings.h"
#include "tests/support/output_of.h"
#include "tests/support/servers.h"

namespace lockbench::watch {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// A psql process that runs the given statements one after the other; ends with this.
class Psql {
 public:
  Psql(const testbed::Server& server, const std::string& user = "postgres",
       const std::string& password = "") {
    setenv("PGPASSWORD", password.empty() ? server.secret().c_str() : password.c_str(), 1);
    const std::string command = fmt::format(
        "psql -XAtq 'host=127.0.0.1 port={} user={} dbname=postgres' "
        ">/dev/null 2>&1",
        server.port(), user);
    pipe_ = popen(command.c_str(), "we");
    if (pipe_ == nullptr) throw deployment::Failure("no psql");
  }
  Psql(const Psql&) = delete;
  Psql& operator=(const Psql&) = delete;
  ~Psql() { pclose(pipe_); }

  void say(const std::string& sql) {
    std::fputs((sql + ";\n").c_str(), pipe_);
    std::fflush(pipe_);
  }

 private:
  std::FILE* pipe_ = nullptr;
};

/// The one value of a statement.
std::string ask(const testbed::Server& server, const std::string& sql) {
  setenv("PGPASSWORD", server.secret().c_str(), 1);
  const std::string command = fmt::format(
      "psql -XAtq 'host=127.0.0.1 port={} user=postgres dbname=postgres' "
      "-c \"{}\"",
      server.port(), sql);
  std::string value = test::output_of(command).text;
  if (!value.ends_with('\n')) throw deployment::Failure("psql answers nothing to " + sql);
  value.pop_back();
  return value;
}

class WatchedPostgres : public testing::Test {
 protected:
  void watch(const Request& request, std::string url = {}) {
    if (url.empty()) url = server().url();
    watch_.emplace("postgres", url, request, seen_);
    ASSERT_TRUE(seen_.comes([&] { return !seen_.facts_.store.empty(); }));
  }
  /// The latest sighting of a lock, once it has this many holders and waiters.
  std::optional<Sighting> see(const std::string& lock, std::size_t holders, std::size_t waiters) {
    return seen_.await_latest(lock, [=](const Sighting& seen) {
      return seen.holders.size() == holders && seen.waiters.value_or(0) == waiters;
    });
  }
  std::string url_of(const std::string& user, const std::string& password) {
    return fmt::format("postgresql://{}:{}@127.0.0.1:{}{}", user, password, server().port(),
                       testbed::kPlainDatabase);
  }
  /// Runs the statements and waits for their end.
  void run(const std::string& sql) {
    Psql psql(server());
    psql.say(sql);
  }

  testbed::Server& server() {
    static const std::unique_ptr<testbed::Server> shared = deployment::need(
        testbed::start_postgres(test::shared_testbed(), {.config = {"autovacuum=off"}}));
    return *shared;
  }

  Sightings seen_;
  std::optional<Running> watch_;
};

TEST_F(WatchedPostgres, ShowsAdvisoryLocksOfPsqlAndTheirQueue) {
  watch({.locks = {"advisory:*"}});
  Psql holder(server());
  holder.say("SELECT pg_advisory_lock(42)");
  const auto held = see("advisory:42", 1, 0);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->shape, Shape::advisory);
  Psql first(server()), second(server());
  first.say("SELECT pg_advisory_lock(42)");
  const auto one = see("advisory:42", 1, 1);
  ASSERT_TRUE(one);
  second.say("SELECT pg_advisory_lock(42)");
  const auto two = see("advisory:42", 1, 2);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->waiting->front().owner, one->waiting->front().owner);
  EXPECT_TRUE(two->waiting->front().since < two->waiting->back().since);
  holder.say("SELECT pg_advisory_unlock(42)");
  const auto next = see("advisory:42", 1, 1);
  ASSERT_TRUE(next);
  EXPECT_EQ(owners_in(next->holders), owners_in({two->waiting->front()}));
  first.say("SELECT pg_advisory_unlock(42)");
  ASSERT_TRUE(see("advisory:42", 1, 0));
  second.say("SELECT pg_advisory_unlock(42)");
  ASSERT_TRUE(see("advisory:42", 0, 0));
}

TEST_F(WatchedPostgres, ShowsLocksOfTwoNumbersAndSharedOnes) {
  const std::string lowest = "advisory:-9223372036854775808";
  watch({.locks = {"advisory:-1,7", lowest}});
  Psql one(server()), other(server());
  one.say("SELECT pg_advisory_lock_shared(-1, 7)");
  other.say("SELECT pg_advisory_lock(8)");
  other.say("SELECT pg_advisory_lock_shared(-1, 7)");
  other.say("SELECT pg_advisory_lock('-9223372036854775808')");
  EXPECT_TRUE(see(lowest, 1, 0));
  const auto held = see("advisory:-1,7", 2, 0);
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->holders[0].shared && held->holders[1].shared);
  watch_->stop();
  EXPECT_FALSE(seen_.of_.contains("advisory:8"));
}

TEST_F(WatchedPostgres, KnowsHowLongAHolderWasIdleAtTheFirstLook) {
  Psql holder(server());
  holder.say("SELECT pg_advisory_lock(43)");
  {
    Psql waits(server());  // its end shows that the holder has the lock
    waits.say(
        "DO $$ BEGIN WHILE pg_try_advisory_lock(43) LOOP PERFORM pg_advisory_unlock(43); "
        "END LOOP; END $$");
  }
  watch({.locks = {"advisory:*"}});
  const auto held = see("advisory:43", 1, 0);
  ASSERT_TRUE(held);
  const auto since = held->holders[0].since;
  ASSERT_TRUE(since);
  EXPECT_LT(*since, held->at);
}

TEST_F(WatchedPostgres, FindsShedLocksTable) {
  run("DROP TABLE IF EXISTS shedlock; CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, "
      "lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, locked_by varchar(255) NOT "
      "NULL)");
  watch({.locks = {"public.shedlock:*"}});
  // Like ShedLock with usingDbTime().
  run("INSERT INTO shedlock VALUES ('report', timezone('utc', now()) + interval '60 s', "
      "timezone('utc', now()), 'host-1')");
  const auto held = see("public.shedlock:report", 1, 0);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->shape, Shape::table_row);
  EXPECT_EQ(held->holders[0].owner, "host-1");
  EXPECT_TRUE(held->holders[0].since);
  ASSERT_TRUE(held->ttl_left);
  EXPECT_GT(*held->ttl_left, std::chrono::seconds(30));
  EXPECT_LE(*held->ttl_left, std::chrono::seconds(60));
  run("UPDATE shedlock SET lock_until = timezone('utc', now()) WHERE name = 'report'");
  const auto freed = see("public.shedlock:report", 0, 0);
  ASSERT_TRUE(freed);
  EXPECT_EQ(freed->ended, Ending::released);
  run("UPDATE shedlock SET lock_until = timezone('utc', now()) + interval '1 s'");
  ASSERT_TRUE(see("public.shedlock:report", 1, 0));
  const auto expired = see("public.shedlock:report", 0, 0);
  ASSERT_TRUE(expired);
  EXPECT_EQ(expired->ended, Ending::expired);
}

TEST_F(WatchedPostgres, ProposesWhereNoPatternIsGiven) {
  Psql holder(server());
  holder.say("SELECT pg_advisory_lock(44)");
  watch({});
  EXPECT_TRUE(seen_.comes([&] { return seen_.proposed_.contains("advisory:*"); }));
  watch_->stop();
  EXPECT_THAT(seen_.of_, IsEmpty());
}

TEST_F(WatchedPostgres, IsBlindWhileTheServerIsDownAndSeesAgain) {
  watch({.locks = {"advisory:*"}});
  ASSERT_TRUE(server().kill_hard());
  ASSERT_TRUE(seen_.comes([&] { return seen_.blind_ == 1; }));
  ASSERT_TRUE(server().restart(true));
  ASSERT_TRUE(seen_.comes([&] { return seen_.sees_ == 1; }));
  Psql holder(server());
  holder.say("SELECT pg_advisory_lock(45)");
  EXPECT_TRUE(see("advisory:45", 1, 0));
}

TEST_F(WatchedPostgres, NeedsNoMoreThanALogin) {
  run("DROP ROLE IF EXISTS watcher; CREATE ROLE watcher LOGIN PASSWORD 'hunter2'");
  run("DROP TABLE IF EXISTS shedlock; CREATE TABLE shedlock (name text, lock_until timestamptz, "
      "locked_by text)");
  watch({.locks = {"*"}}, url_of("watcher", "hunter2"));
  Psql holder(server()), waiter(server());
  holder.say("SELECT pg_advisory_lock(46)");
  ASSERT_TRUE(see("advisory:46", 1, 0));
  waiter.say("SELECT pg_advisory_lock(46)");
  ASSERT_TRUE(see("advisory:46", 1, 1));
  watch_->stop();
  EXPECT_THAT(seen_.facts_.unseen, Contains(HasSubstr("pg_monitor")));
  EXPECT_THAT(seen_.facts_.unseen, Contains(HasSubstr("public.shedlock: SELECT is not granted")));
  holder.say("SELECT pg_advisory_unlock(46)");
}

TEST_F(WatchedPostgres, SeesAllWithTheDocumentedRights) {
  run("DROP TABLE IF EXISTS shedlock; CREATE TABLE shedlock (name text, lock_until timestamptz, "
      "locked_by text); INSERT INTO shedlock VALUES ('x', now() + interval '1 h', 'me')");
  run("DROP OWNED BY monitor; DROP ROLE monitor");
  run("CREATE ROLE monitor LOGIN PASSWORD 'hunter2'; GRANT pg_monitor TO monitor; "
      "GRANT SELECT ON shedlock TO monitor");
  watch({.locks = {"*"}}, url_of("monitor", "hunter2"));
  EXPECT_TRUE(see("public.shedlock:x", 1, 0));
  watch_->stop();
  EXPECT_THAT(seen_.facts_.unseen, testing::Not(Contains(HasSubstr("pg_monitor"))));
  EXPECT_THAT(seen_.facts_.unseen, testing::Not(Contains(HasSubstr("is not granted"))));
}

TEST_F(WatchedPostgres, SeesALockThatItsOwnPooledSessionWasLeft) {
  const auto pooler = deployment::need(
      testbed::start_pgbouncer(test::shared_testbed(), server().port(), {.pool_size = 1}));
  // Each statement of a client, and of the watch, runs in the one session of the pool.
  {
    Psql client(*pooler, "postgres", server().secret());
    client.say("SELECT pg_advisory_lock(48)");
  }
  watch({.locks = {"advisory:*"}}, pooler->url());
  EXPECT_TRUE(see("advisory:48", 1, 0)) << "the client is gone, but the pool kept its session";
}

/// Whether anything wrote meanwhile: every write takes a transaction number.
bool writes(const testbed::Server& server, const std::function<void()>& meanwhile) {
  const auto number = [&] { return std::stoll(ask(server, "SELECT txid_current()")); };
  const auto before = number();
  meanwhile();
  return number() != before + 1;
}

// As the superuser, so that permissions do not prevent writes.
TEST_F(WatchedPostgres, WritesNothing) {
  run("DROP TABLE IF EXISTS written; CREATE TABLE written (a int)");
  EXPECT_TRUE(writes(server(), [&] { run("INSERT INTO written VALUES (1)"); }));
  Psql holder(server());
  holder.say("SELECT pg_advisory_lock(47)");
  EXPECT_FALSE(writes(server(), [&] {
    watch({.locks = {"*"}});
    ASSERT_TRUE(see("advisory:47", 1, 0));
    const std::uint64_t commands = watch_->source().commands();
    ASSERT_TRUE(seen_.comes([&] { return watch_->source().commands() > commands + 20; }));
  }));
  EXPECT_EQ(ask(server(),
                "SELECT bool_and(query LIKE 'SET TRANSACTION READ ONLY;%') FROM pg_stat_activity "
                "WHERE application_name = 'lockbench'"),
            "t");
}

}  // namespace
}  // namespace lockbench::watch

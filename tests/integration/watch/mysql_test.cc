#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>

#include "deployment/failure.h"
#include "testbed/servers/kinds.h"
#include "tests/integration/watch/sightings.h"
#include "tests/support/output_of.h"
#include "tests/support/servers.h"

namespace lockbench::watch {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string client_of(const testbed::Server& server) {
  setenv("MYSQL_PWD", server.secret().c_str(), 1);
  return fmt::format("mariadb --no-defaults -N -B --host=127.0.0.1 --port={} --user={}",
                     server.port(), testbed::kUser);
}

/// A client that runs the given statements one after the other; ends with this.
class MariadbClient {
 public:
  explicit MariadbClient(const testbed::Server& server)
      : pipe_(popen((client_of(server) + " >/dev/null 2>&1").c_str(), "we")) {
    if (pipe_ == nullptr) throw deployment::Failure("no client of MariaDB");
  }
  MariadbClient(const MariadbClient&) = delete;
  MariadbClient& operator=(const MariadbClient&) = delete;
  ~MariadbClient() { pclose(pipe_); }

  void say(const std::string& sql) {
    std::fputs((sql + ";\n").c_str(), pipe_);
    std::fflush(pipe_);
  }

 private:
  std::FILE* pipe_ = nullptr;
};

/// The answer to the statements, once they have ended.
std::string run_sql(const testbed::Server& server, const std::string& sql) {
  auto [text, status] =
      test::output_of(fmt::format("{} --execute=\"{}\" 2>&1", client_of(server), sql));
  if (status != 0) throw deployment::Failure(sql + ": " + text);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

class WatchedMariadb : public testing::Test {
 protected:
  void watch(testbed::Server& server, const Request& request, std::string url = {}) {
    if (url.empty()) url = server.url();
    watch_.emplace("mysql", url, request, seen_);
    ASSERT_TRUE(seen_.comes([&] { return !seen_.facts_.store.empty(); }));
  }
  /// The latest sighting of a lock, once it has this many holders and waiters.
  std::optional<Sighting> see(const std::string& lock, std::size_t holders, std::size_t waiters) {
    return seen_.await_latest(lock, [=](const Sighting& seen) {
      return seen.holders.size() == holders && seen.waiters.value_or(0) == waiters;
    });
  }
  /// Why the server cannot be watched; empty if it can.
  std::string why_not(testbed::Server& server, const Request& request, std::string url = {}) {
    const auto made = make_source("mysql", url.empty() ? server.url() : url, request);
    if (!made) return made.error();
    const auto reached = (*made)->reach({});
    return reached ? "" : reached.error();
  }
  static std::string url_of(const testbed::Server& server, const std::string& user) {
    return fmt::format("mysql://{}:hunter2@127.0.0.1:{}", user, server.port());
  }
  /// One holder, then two waiters, each of which is granted the lock in turn.
  void expect_queue(testbed::Server& server, const std::string& lock) {
    const std::string take = fmt::format("SELECT GET_LOCK('{}', 600)", lock),
                      release = fmt::format("SELECT RELEASE_LOCK('{}')", lock);
    MariadbClient second(server), first(server), holder(server);  // the holder ends first
    holder.say(take);
    const auto held = see(lock, 1, 0);
    ASSERT_TRUE(held);
    EXPECT_EQ(held->shape, Shape::advisory);
    EXPECT_THAT(held->holders[0].about, HasSubstr(fmt::format("{}@127.0.0.1", testbed::kUser)));
    first.say(take);
    ASSERT_TRUE(see(lock, 1, 1));
    second.say(take);
    const auto two = see(lock, 1, 2);
    ASSERT_TRUE(two);
    EXPECT_TRUE(two->waiting->front().since < two->waiting->back().since);
    holder.say(release);
    // Holders and waiters are not looked at in one moment.
    const auto next = owners_in({two->waiting->front()});
    ASSERT_TRUE(seen_.await_latest(lock, [&](const Sighting& seen) {
      return owners_in(seen.holders) == next && seen.waiters == 1u;
    }));
    first.say(release);
    ASSERT_TRUE(see(lock, 1, 0));
    second.say(release);
    ASSERT_TRUE(see(lock, 0, 0));
  }

  /// With everything switched on that shows named locks.
  testbed::Server& server() {
    static const std::unique_ptr<testbed::Server> shared = deployment::need(testbed::start_mariadb(
        test::shared_testbed(),
        {.config = {"performance-schema=ON",
                    "performance-schema-instrument=wait/lock/metadata/sql/mdl=ON"}}));
    return *shared;
  }
  /// With MariaDB's defaults: performance_schema is off.
  testbed::Server& plain() {
    static const std::unique_ptr<testbed::Server> shared =
        deployment::need(testbed::start_mariadb(test::shared_testbed()));
    return *shared;
  }

  Sightings seen_;
  std::optional<Running> watch_;
};

TEST_F(WatchedMariadb, ShowsNamedLocksAndTheirQueue) {
  watch(server(), {.locks = {"order:*"}});
  expect_queue(server(), "order:17");
}

TEST_F(WatchedMariadb, ShowsHoldersByThePluginWithoutPerformanceSchema) {
  run_sql(plain(), "INSTALL SONAME 'metadata_lock_info'");
  watch(plain(), {.locks = {"order:*"}});
  {
    MariadbClient holder(plain());
    holder.say("SELECT GET_LOCK('order:17', 600)");
    const auto held = see("order:17", 1, 0);
    ASSERT_TRUE(held);
    EXPECT_FALSE(held->waiters) << "it does not show them";
  }
  EXPECT_TRUE(see("order:17", 0, 0));
  watch_->stop();
  run_sql(plain(), "UNINSTALL SONAME 'metadata_lock_info'");
}

TEST_F(WatchedMariadb, FindsShedLocksTableOnAServerThatShowsNoNamedLocks) {
  run_sql(plain(), "DROP DATABASE IF EXISTS app");
  EXPECT_THAT(why_not(plain(), {.locks = {"order:*"}}), HasSubstr("INSTALL SONAME"));
  run_sql(plain(),
          "CREATE DATABASE app; CREATE TABLE "
          "app.shedlock (name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMP(3) NOT NULL, locked_at "
          "TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL)");
  watch(plain(), {.locks = {"app.shedlock:*"}});
  // Like ShedLock with usingDbTime().
  run_sql(plain(),
          "INSERT INTO app.shedlock VALUES ('report', UTC_TIMESTAMP(3) + INTERVAL 60 SECOND, "
          "UTC_TIMESTAMP(3), 'host-1')");
  const auto held = see("app.shedlock:report", 1, 0);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->shape, Shape::table_row);
  EXPECT_EQ(held->holders[0].owner, "host-1");
  EXPECT_TRUE(held->holders[0].since);
  ASSERT_TRUE(held->ttl_left);
  EXPECT_GT(*held->ttl_left, std::chrono::seconds(30));
  EXPECT_LE(*held->ttl_left, std::chrono::seconds(60));
  run_sql(plain(), "UPDATE app.shedlock SET lock_until = UTC_TIMESTAMP(3)");
  const auto freed = see("app.shedlock:report", 0, 0);
  ASSERT_TRUE(freed);
  EXPECT_EQ(freed->ended, Ending::released);
  run_sql(plain(), "UPDATE app.shedlock SET lock_until = UTC_TIMESTAMP(3) + INTERVAL 1 SECOND");
  ASSERT_TRUE(see("app.shedlock:report", 1, 0));
  const auto expired = see("app.shedlock:report", 0, 0);
  ASSERT_TRUE(expired);
  EXPECT_EQ(expired->ended, Ending::expired);
  watch_->stop();
  EXPECT_THAT(seen_.facts_.unseen, Contains(HasSubstr("named locks (GET_LOCK)")));
}

TEST_F(WatchedMariadb, IsBlindWhileTheServerIsDownAndSeesAgain) {
  watch(server(), {.locks = {"order:*"}});
  killed_and_back(server(), seen_, true);
  MariadbClient holder(server());
  holder.say("SELECT GET_LOCK('order:18', 0)");
  EXPECT_TRUE(see("order:18", 1, 0));
}

TEST_F(WatchedMariadb, SaysWhichRightsItLacksAndSeesAllWithTheDocumentedOnes) {
  run_sql(server(),
          "CREATE DATABASE IF NOT EXISTS jobs; DROP TABLE IF EXISTS jobs.shedlock; CREATE TABLE "
          "jobs.shedlock (name VARCHAR(64), lock_until DATETIME(3), locked_by VARCHAR(255)); "
          "INSERT INTO jobs.shedlock VALUES ('x', UTC_TIMESTAMP() + INTERVAL 1 HOUR, 'me'); "
          "CREATE OR REPLACE USER poor@'127.0.0.1' IDENTIFIED BY 'hunter2'; "
          "GRANT INSERT ON jobs.shedlock TO poor@'127.0.0.1'; "
          "CREATE OR REPLACE USER watcher@'127.0.0.1' IDENTIFIED BY 'hunter2'; "
          "GRANT PROCESS ON *.* TO watcher@'127.0.0.1'; "
          "GRANT SELECT ON performance_schema.* TO watcher@'127.0.0.1'; "
          "GRANT SELECT ON jobs.shedlock TO watcher@'127.0.0.1'");
  EXPECT_THAT(why_not(server(), {.locks = {"*"}}, url_of(server(), "poor")),
              HasSubstr("SELECT command denied"));
  run_sql(server(), "GRANT SELECT ON performance_schema.* TO poor@'127.0.0.1'");
  watch(server(), {.locks = {"*"}}, url_of(server(), "poor"));
  watch_.reset();
  EXPECT_THAT(seen_.facts_.unseen, Contains(HasSubstr("PROCESS")));
  EXPECT_THAT(seen_.facts_.unseen, Contains(HasSubstr("jobs.shedlock: SELECT is not granted")));

  watch(server(), {.locks = {"*"}}, url_of(server(), "watcher"));
  expect_queue(server(), "order:19");
  EXPECT_TRUE(see("jobs.shedlock:x", 1, 0));
  watch_->stop();
  EXPECT_THAT(seen_.facts_.unseen, testing::Not(Contains(HasSubstr("PROCESS privilege"))));
  EXPECT_THAT(seen_.facts_.unseen, testing::Not(Contains(HasSubstr("is not granted"))));
}

// As a user with all rights, so that rights do not prevent writes.
TEST_F(WatchedMariadb, WritesAndLocksNothing) {
  const auto changes = [&] {
    return run_sql(server(),
                   "SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS WHERE "
                   "VARIABLE_NAME REGEXP '^COM_(INSERT|UPDATE|DELETE|REPLACE|"
                   "LOCK_TABLES|BEGIN|CREATE_|DROP_|ALTER_)'");
  };
  const std::string at_first = changes();
  run_sql(server(), "CREATE DATABASE IF NOT EXISTS written");
  EXPECT_NE(changes(), at_first) << "it shows a statement that writes";
  const std::string before = changes();
  watch(server(), {.locks = {"*"}});
  const std::uint64_t commands = watch_->source().commands();
  ASSERT_TRUE(seen_.comes([&] { return watch_->source().commands() > commands + 20; }));
  EXPECT_EQ(changes(), before);
}

}  // namespace
}  // namespace lockbench::watch

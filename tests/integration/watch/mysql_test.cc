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
  void watch(const Request& request, const std::string& url = server().url()) {
    watch_.emplace("mysql", url, request, seen_);
    ASSERT_TRUE(seen_.comes([&] { return !seen_.facts_.store.empty(); }));
  }
  /// The latest sighting of a lock, once it is held or free.
  std::optional<Sighting> see(const std::string& lock, bool held) {
    return seen_.await_latest(lock,
                              [=](const Sighting& seen) { return seen.holders.empty() != held; });
  }
  static testbed::Server& server() {
    static const std::unique_ptr<testbed::Server> shared =
        deployment::need(testbed::start_mariadb(test::shared_testbed()));
    return *shared;
  }
  void SetUp() override {
    run_sql(server(),
            "INSTALL PLUGIN IF NOT EXISTS metadata_lock_info SONAME 'metadata_lock_info'");
  }

  Sightings seen_;
  std::optional<Running> watch_;
};

TEST_F(WatchedMariadb, ShowsWhoHoldsNamedLocks) {
  watch({.locks = {"order:*"}});
  const std::string take = "SELECT GET_LOCK('order:17', 600)",
                    release = "SELECT RELEASE_LOCK('order:17')";
  MariadbClient next(server()), holder(server());  // the holder ends first
  holder.say(take);
  const auto held = see("order:17", true);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->shape, Shape::advisory);
  EXPECT_THAT(held->holders[0].about, HasSubstr(fmt::format("{}@127.0.0.1", testbed::kUser)));
  EXPECT_FALSE(held->waiters) << "the plugin does not show them";
  next.say(take);
  holder.say(release);
  ASSERT_TRUE(seen_.await_latest("order:17", [&](const Sighting& seen) {
    return !seen.holders.empty() && owners_in(seen.holders) != owners_in(held->holders);
  }));
  next.say(release);
  EXPECT_TRUE(see("order:17", false));
}

TEST_F(WatchedMariadb, FindsShedLocksTableOnAServerThatShowsNoNamedLocks) {
  run_sql(server(), "UNINSTALL SONAME 'metadata_lock_info'; DROP DATABASE IF EXISTS app");
  const auto reached = (*make_source("mysql", server().url(), {.locks = {"order:*"}}))->reach({});
  ASSERT_FALSE(reached);
  EXPECT_THAT(reached.error(), HasSubstr("INSTALL SONAME"));
  run_sql(server(),
          "CREATE DATABASE app; CREATE TABLE "
          "app.shedlock (name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMP(3) NOT NULL, locked_at "
          "TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL)");
  watch({.locks = {"app.shedlock:*"}});
  // Like ShedLock with usingDbTime().
  run_sql(server(),
          "INSERT INTO app.shedlock VALUES ('report', UTC_TIMESTAMP(3) + INTERVAL 60 SECOND, "
          "UTC_TIMESTAMP(3), 'host-1')");
  const auto held = see("app.shedlock:report", true);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->shape, Shape::table_row);
  EXPECT_EQ(held->holders[0].owner, "host-1");
  EXPECT_TRUE(held->holders[0].since);
  ASSERT_TRUE(held->ttl_left);
  EXPECT_GT(*held->ttl_left, std::chrono::seconds(30));
  EXPECT_LE(*held->ttl_left, std::chrono::seconds(60));
  run_sql(server(), "UPDATE app.shedlock SET lock_until = UTC_TIMESTAMP(3)");
  const auto freed = see("app.shedlock:report", false);
  ASSERT_TRUE(freed);
  EXPECT_EQ(freed->ended, Ending::released);
  run_sql(server(), "UPDATE app.shedlock SET lock_until = UTC_TIMESTAMP(3) + INTERVAL 1 SECOND");
  ASSERT_TRUE(see("app.shedlock:report", true));
  const auto expired = see("app.shedlock:report", false);
  ASSERT_TRUE(expired);
  EXPECT_EQ(expired->ended, Ending::expired);
  watch_->stop();
  EXPECT_THAT(seen_.facts_.unseen, Contains(HasSubstr("named locks (GET_LOCK)")));
}

TEST_F(WatchedMariadb, IsBlindWhileTheServerIsDownAndSeesAgain) {
  watch({.locks = {"order:*"}});
  killed_and_back(server(), seen_, true);
  MariadbClient holder(server());
  holder.say("SELECT GET_LOCK('order:18', 0)");
  EXPECT_TRUE(see("order:18", true));
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
          "GRANT SELECT ON jobs.shedlock TO watcher@'127.0.0.1'");
  const auto url_of = [](const std::string& user) {
    return fmt::format("mysql://{}:hunter2@127.0.0.1:{}", user, server().port());
  };
  MariadbClient holder(server());
  holder.say("SELECT GET_LOCK('order:19', 0)");
  watch({.locks = {"*"}}, url_of("poor"));
  const auto poorly = see("order:19", true);
  ASSERT_TRUE(poorly);
  EXPECT_EQ(poorly->holders[0].about, poorly->holders[0].owner);
  watch_.reset();
  EXPECT_THAT(seen_.facts_.unseen, Contains(HasSubstr("jobs.shedlock: SELECT is not granted")));

  watch({.locks = {"*"}}, url_of("watcher"));
  EXPECT_TRUE(see("jobs.shedlock:x", true));
  EXPECT_TRUE(seen_.await_latest("order:19", [](const Sighting& seen) {
    return !seen.holders.empty() && seen.holders[0].about.find("@127.0.0.1") != std::string::npos;
  }));
  watch_->stop();
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
  watch({.locks = {"*"}});
  const std::uint64_t commands = watch_->source().commands();
  ASSERT_TRUE(seen_.comes([&] { return watch_->source().commands() > commands + 20; }));
  EXPECT_EQ(changes(), before);
}

}  // namespace
}  // namespace lockbench::watch

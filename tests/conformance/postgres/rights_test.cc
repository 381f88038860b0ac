#include <gmock/gmock.h>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/full_use.h"
#include "tests/conformance/postgres/postgres_test_store.h"

namespace lockbench::test {
namespace {

using testing::HasSubstr;

/// A database in which the documented role has the documented rights, and other roles have none.
class PostgresRights : public testing::Test {
 protected:
  PostgresRights() {
    admin_.ask("CREATE DATABASE rights");
    admin_.ask("REVOKE ALL ON DATABASE rights FROM PUBLIC");
    for (const std::string& statement :
         documented_rights("CREATE ROLE", {{"'PASSWORD'", "'hunter2'"}, {"app", "rights"}})) {
      admin_.ask(statement);
    }
  }
  ~PostgresRights() override {
    admin_.ask("DROP DATABASE rights WITH (FORCE)");
    admin_.ask("DROP ROLE lockbench");
  }

  std::string url() const {
    return fmt::format("postgresql://lockbench:hunter2@127.0.0.1:{}/rights",
                       shared_postgres().server().port());
  }
  /// The superuser's URL.
  static std::string admins_url() {
    std::string url = shared_postgres().server().url();
    return url.replace(url.rfind('/') + 1, std::string::npos, "rights");
  }
  std::vector<std::string> outcomes() const { return use_all_fully("postgres", url()); }

  PostgresProbe admin_ = shared_postgres().probe();
};

TEST_F(PostgresRights, AreEnough) { EXPECT_THAT(outcomes(), testing::Each("")); }

TEST_F(PostgresRights, AreAllNeeded) {
  admin_.ask("REVOKE CREATE ON DATABASE rights FROM lockbench");
  EXPECT_THAT(outcomes(), testing::Each(HasSubstr("permission denied for database rights")));
  admin_.ask("GRANT CREATE ON DATABASE rights TO lockbench");
  admin_.ask("REVOKE CONNECT ON DATABASE rights FROM lockbench");
  EXPECT_THAT(outcomes(), testing::Each(HasSubstr("permission denied for database \"rights\"")));
}

TEST_F(PostgresRights, ALockWhoseReleaseIsRefusedEndsWithItsSession) {
  HeldBench bench(kLongTtl, *find_strategy("postgres-advisory"), url());
  PostgresProbe(admins_url())
      .ask("REVOKE EXECUTE ON FUNCTION pg_advisory_unlock(bigint) FROM PUBLIC");
  const ReleaseResult refused = bench.holder->lock().release(bench.held);
  EXPECT_EQ(refused.outcome, ReleaseOutcome::failed);
  EXPECT_THAT(refused.reason, HasSubstr("permission denied for function pg_advisory_unlock"));
  EXPECT_TRUE(bench.becomes_free());
  EXPECT_TRUE(bench.holder->try_once(bench.key()).lease) << "the client goes on";
}

TEST_F(PostgresRights, GiveNothingElse) {
  admin_.ask("CREATE DATABASE other");
  admin_.ask("REVOKE ALL ON DATABASE other FROM PUBLIC");
  PostgresProbe user(url());
  for (const char* statement :
       {"CREATE TABLE public.mine (a int)", "CREATE ROLE mine", "CREATE DATABASE mine",
        "DROP DATABASE other", "ALTER SYSTEM SET fsync = off", "COPY (SELECT 1) TO PROGRAM 'true'",
        "SELECT pg_read_file('PG_VERSION')", "SELECT pg_reload_conf()",
        "SELECT * FROM pg_authid"}) {
    EXPECT_THROW(user.ask(statement), std::runtime_error) << statement;
  }
  std::string elsewhere = url();
  elsewhere.replace(elsewhere.rfind('/') + 1, std::string::npos, "other");
  EXPECT_THROW(PostgresProbe{elsewhere}, std::runtime_error);
  admin_.ask("DROP DATABASE other WITH (FORCE)");
}

}  // namespace
}  // namespace lockbench::test

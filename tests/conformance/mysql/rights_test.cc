#include <gmock/gmock.h>

#include "strategies/store.h"
#include "tests/conformance/common/full_use.h"
#include "tests/conformance/mysql/mysql_test_store.h"

namespace lockbench::test {
namespace {

using testing::HasSubstr;

/// A user with the documented rights.
class MysqlRights : public testing::Test {
 protected:
  MysqlRights() {
    // The testbed has a user of the documented name.
    for (const std::string& statement :
         documented_rights("CREATE USER", {{"'PASSWORD'", "'hunter2'"},
                                           {"USER lockbench", "USER ann"},
                                           {"TO lockbench", "TO ann"}})) {
      admin_.ask(statement);
    }
  }
  ~MysqlRights() override { admin_.ask("DROP USER ann"); }

  static std::string url() {
    return fmt::format("mysql://ann:hunter2@127.0.0.1:{}", shared_mysql().server().port());
  }
  static std::vector<std::string> outcomes() { return use_all_fully("mysql", url()); }

  MysqlProbe admin_ = shared_mysql().probe();
};

TEST_F(MysqlRights, AreEnough) { EXPECT_THAT(outcomes(), testing::Each("")); }

TEST_F(MysqlRights, AreAllNeeded) {
  for (const char* right : {"CREATE", "DROP", "SELECT", "INSERT", "UPDATE", "DELETE"}) {
    admin_.ask(fmt::format("REVOKE {} ON `lockbench\\_%`.* FROM ann", right));
    EXPECT_THAT(outcomes(), testing::Contains(HasSubstr("denied"))) << right;
    admin_.ask(fmt::format("GRANT {} ON `lockbench\\_%`.* TO ann", right));
  }
}

/// Another user's, which the server shows only with the right PROCESS.
TEST_F(MysqlRights, ADatabaseInUseIsNotDroppedAsAKilledRuns) {
  const std::string database = schema_of_run("20200101T000000Z-4f3a9c");
  admin_.ask("CREATE DATABASE " + database);
  MysqlProbe run = shared_mysql().probe();
  run.ask("USE " + database);
  const auto is_there_after_a_run = [&] {
    const auto store = find_store_kind("mysql")->make(url(), kPatience);
    EXPECT_TRUE(store->remove_run("another", {}));
    return !admin_.ask(fmt::format("SHOW DATABASES LIKE '{}'", database)).empty();
  };
  EXPECT_TRUE(is_there_after_a_run());
  admin_.ask("GRANT PROCESS ON *.* TO ann");
  EXPECT_TRUE(is_there_after_a_run());
  run.ask("USE mysql");
  EXPECT_FALSE(is_there_after_a_run());
}

TEST_F(MysqlRights, GiveNothingElse) {
  MysqlProbe user(shared_mysql().server().port(), "ann", "hunter2");
  const std::string others = admin_.value("SELECT CONNECTION_ID()");
  for (const std::string& statement :
       {std::string("CREATE DATABASE mine"), std::string("CREATE USER mine"),
        std::string("SELECT * FROM mysql.global_priv"), std::string("SET GLOBAL wait_timeout = 1"),
        std::string("SELECT 1 INTO OUTFILE 'mine'"), "KILL " + others}) {
    EXPECT_THROW(user.ask(statement), std::runtime_error) << statement;
  }
}

}  // namespace
}  // namespace lockbench::test

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "testbed/servers/postgres_server.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// Each of them alone would make it fail.
TEST(LibpqEnvironment, DoesNotReachPrivateServers) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, short_run({"postgres-advisory", "--out", "r.json"}),
                                    {.environment = {{"PGSSLMODE", "require"},
                                                     {"PGHOSTADDR", "192.0.2.1"},
                                                     {"PGSERVICE", "nosuch"},
                                                     {"PGOPTIONS", "-c nosuch=1"},
                                                     {"PGTZ", "nosuch"},
                                                     {"PGTARGETSESSIONATTRS", "read-only"}}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(LibpqEnvironment, CountsForTheUsersServerAndIsNamed) {
  const auto started = testbed::start_postgres(shared_testbed());
  ASSERT_TRUE(started) << started.error();
  const testbed::Server* const server = started->get();
  const std::string port = std::to_string(server->port());
  const Setting setting{.environment = {{"PGHOST", "127.0.0.1"},
                                        {"PGPORT", port},
                                        {"PGUSER", "postgres"},
                                        {"PGPASSWORD", server->secret()}}};
  const Scratch scratch;
  const Outcome found = lockbench(scratch, {"doctor", "--postgres", "dbname=postgres"}, setting);
  EXPECT_EQ(found.code, 0) << found.out;
  expect_in(found.out, fmt::format("127.0.0.1:{}, version ", port));
  expect_in(found.out, "PGHOST, PGPASSWORD, PGPORT, PGUSER: in force for --postgres");
  EXPECT_FALSE(has(found.out + found.err, server->secret()));
  // What the DSN says comes first.
  const std::string nowhere = std::to_string(closed_port());
  const Outcome given =
      lockbench(scratch, {"doctor", "--postgres", "dbname=postgres port=" + nowhere}, setting);
  EXPECT_EQ(given.code, 2);
  expect_in(given.out, "127.0.0.1:" + nowhere);
  const Outcome none = lockbench(scratch, {"doctor"}, setting);
  expect_in(none.out, "in force only with --postgres");
}

}  // namespace
}  // namespace lockbench::test

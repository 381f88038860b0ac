#include <gtest/gtest.h>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

TEST(ManyClients, RunInOneProcessThatRaisesItsOpenFiles) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch,
                {"run", "redis-set-nx-lua", "--clients", "2000", "--keys", "per-client",
                 "--resource", "redis", "--iterations", "4000", "--out", "r.json"},
                {.open_files = 256});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redis-set-nx-lua");
  EXPECT_EQ(run.at("fairness").at("per_client").size(), 2000U);
  EXPECT_EQ(run.at("errors"), Json::array());
  EXPECT_EQ(run.at("outcomes").at("failed"), 0);
  EXPECT_EQ(run.at("outcomes").at("unknown"), 0);
  EXPECT_GE(run.at("audit").at("increments"), 4000);
  EXPECT_TRUE(kept_exclusion(run));
}

}  // namespace
}  // namespace lockbench::test

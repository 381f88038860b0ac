#include <gtest/gtest.h>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

TEST(Rtt, IsAddedToEveryRoundTripOfTheLockAndTheCounterHasItsOwnServer) {
  constexpr double kRtt = 0.010;
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch, {"run", "redis-set-nx", "--rtt", "10ms", "--keys", "per-client", "--clients", "4",
                "--iterations", "40", "--warmup", "0ms", "--resource", "redis", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redis-set-nx");
  for (const char* part : {"acquire", "release"}) {
    EXPECT_GE(run.at(part).at("min"), kRtt * 0.99) << part << ", but for the histogram's error";
  }
  EXPECT_EQ(run.at("sections"), 40);
  EXPECT_EQ(run.at("audit").at("counter"), 40);
  EXPECT_TRUE(kept_exclusion(run));
  EXPECT_EQ(result.at("workload").at("rtt"), kRtt);
  const Json& servers = result.at("environment").at("servers");
  EXPECT_NE(servers.at("redis").at("endpoints"), servers.at("counter").at("endpoints"));
}

}  // namespace
}  // namespace lockbench::test

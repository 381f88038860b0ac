#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

constexpr double kRtt = 0.010;

Json result_with_rtt(const std::string& rtt, std::vector<std::string> more = {}) {
  const Scratch scratch;
  std::vector<std::string> arguments = {
      "run", "redis-set-nx", "--rtt", rtt,        "--keys", "per-client", "--clients",
      "4",   "--iterations", "40",    "--warmup", "0ms",    "--out",      "r.json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = lockbench(scratch, arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return read_result(scratch / "r.json");
}

TEST(Rtt, IsAddedToEveryRoundTripOfTheLock) {
  const Json result = result_with_rtt("10ms");
  const Json& run = run_of(result, "redis-set-nx");
  for (const char* part : {"acquire", "release"}) {
    EXPECT_GE(run.at(part).at("min"), kRtt * 0.99) << part << ", but for the histogram's error";
  }
  EXPECT_EQ(run.at("sections"), 40);
  EXPECT_TRUE(kept_exclusion(run));
  EXPECT_EQ(result.at("workload").at("rtt"), kRtt);
}

TEST(Rtt, IsNothingUnlessAskedFor) {
  const Json result = result_with_rtt("0s");
  EXPECT_LT(run_of(result, "redis-set-nx").at("acquire").at("min"), kRtt);
  EXPECT_EQ(result.at("workload").at("rtt"), 0);
}

/// Between reading the counter and writing it there is nothing but one round trip to its server: of
/// all sections, one at least is not delayed.
TEST(Rtt, DoesNotSlowTheCounter) {
  const Json result = result_with_rtt("10ms", {"--resource", "redis"});
  const Json& run = run_of(result, "redis-set-nx");
  EXPECT_LT(run.at("hold").at("min"), kRtt);
  EXPECT_EQ(run.at("audit").at("counter"), 40);
  const Json& servers = result.at("environment").at("servers");
  EXPECT_NE(servers.at("redis").at("endpoints"), servers.at("counter").at("endpoints"));
}

}  // namespace
}  // namespace lockbench::test

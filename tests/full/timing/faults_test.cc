#include <gtest/gtest.h>

#include "tests/full/timing/certificate.h"
#include "tests/integration/support/program.h"

// How deep the throughput falls under a fault, and that it comes back.

namespace lockbench::test {
namespace {

/// The strategy's run; empty if it was disturbed.
Json struck(const std::string& strategy, const std::vector<std::string>& more) {
  const Scratch scratch;
  std::vector<std::string> arguments = {"run",   strategy,   "--load", "reacquire", "--ttl",
                                        "500ms", "--warmup", "200ms",  "--out",     "r.json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = lockbench(scratch, arguments);
  const Json result = read_result(scratch / "r.json");
  if (!are_conclusive(result.at("runs"))) return {};
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return run_of(result, strategy);
}

/// Sections of the points whose interval lies after that time.
int sections_after(const Json& run, double time) {
  int sections = 0;
  for (const Json& point : run.at("series")) {
    if (point.at("t").get<double>() - 1 > time) sections += point.at("sections").get<int>();
  }
  return sections;
}

TEST(FaultDepth, NobodyIsServedUntilAKilledStoreIsBackOrItsReplicaTakesItsPlace) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"redis-set-nx-lua", {"--fault", "store-kill@1s+500ms", "--duration", "5s"}},
      {"redis-wait", {"--replicas", "2", "--fault", "failover@1s+300ms", "--duration", "4s"}}};
  for (const auto& [strategy, options] : cases) {
    const Json run = struck(strategy, options);
    if (run.is_null()) continue;
    const Json& mark = run.at("faults").front();
    EXPECT_LT(mark.at("lowest_share"), 0.1) << strategy;
    EXPECT_GT(sections_after(run, mark.at("healed_seconds")), 0) << strategy;
  }
}

TEST(FaultDepth, APartitionCutsOffItsShareOfTheClients) {
  // Each has its own lock, so that those who are cut off do not hold up the others.
  const Json run =
      struck("redis-set-nx-lua", {"--keys", "per-client", "--fault", "partition:0.5@500ms+1500ms",
                                  "--duration", "3s", "--think", "1ms"});
  if (run.is_null()) return;
  EXPECT_GT(run.at("faults").front().at("lowest_share"), 0.01) << "half go on";
  EXPECT_GT(run.at("acquire").at("max").get<double>() + run.at("release").at("max").get<double>(),
            1.0)
      << "and the others wait for answers until it is healed";
  EXPECT_EQ(run.at("outcomes").at("failed"), 0) << "nothing is lost by it";
}

TEST(FaultDepth, ADelayIsOverWhenItIsHealed) {
  const Json run = struck("redis-set-nx-lua", {"--clients", "1", "--fault",
                                               "delay:50ms@500ms+500ms", "--duration", "2s"});
  if (run.is_null()) return;
  EXPECT_GE(run.at("acquire").at("max"), 0.050 * 0.99);
  EXPECT_LT(run.at("acquire").at("p50"), 0.050);
  EXPECT_LT(run.at("faults").front().at("lowest_share"), 0.5);
}

TEST(FaultDepth, AFrozenMinorityDoesNotEndTheGrants) {
  const Json run = struck("redlock-parallel", {"--node-timeout", "50ms", "--fault",
                                               "node-freeze:2@500ms", "--duration", "3s"});
  if (run.is_null()) return;
  EXPECT_GT(sections_after(run, run.at("faults").front().at("at_seconds")), 0);
  const Json& votes = run.at("quorum").at("votes");
  const auto failed = [&](int node) { return votes.at(node).at(3).get<int>(); };
  EXPECT_GT(failed(3), failed(0)) << "the last two stopped answering";
  EXPECT_GT(failed(4), failed(0));
}

}  // namespace
}  // namespace lockbench::test

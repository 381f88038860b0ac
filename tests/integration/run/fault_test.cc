#include <gtest/gtest.h>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

/// A fault of each kind that private servers can be struck by, healed after half a second.
struct Struck {
  std::string name, strategy, fault;
  bool harms = false;  ///< it fails sections, which is no error of the run
  std::vector<std::string> options{};

  friend std::ostream& operator<<(std::ostream& out, const Struck& struck) {
    return out << struck.name;
  }
};

class RunFault : public testing::TestWithParam<Struck> {};

TEST_P(RunFault, IsMadeHealedAndMarkedAndTheRunKeepsItsPromise) {
  const auto& [name, strategy, fault, harms, options] = GetParam();
  const Scratch scratch;
  const std::string timed = fault + "@500ms+500ms";
  std::vector<std::string> arguments = {"run",        strategy,     "--load",         "reacquire",
                                        "--keys",     "per-client", "--warmup",       "200ms",
                                        "--fault",    timed,        "--node-timeout", "1s",
                                        "--duration", "4s",         "--out",          "r.json"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Outcome outcome = lockbench(scratch, arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(result.at("workload").at("fault"), Json::array({timed}));
  const Json& run = run_of(result, strategy);
  ASSERT_EQ(run.at("faults").size(), 1U);
  const Json& mark = run.at("faults").front();
  EXPECT_EQ(mark.at("fault"), fault);
  EXPECT_GE(mark.at("at_seconds"), 0.7);
  EXPECT_GE(mark.at("healed_seconds"), 1.2);
  const Json& outcomes = run.at("outcomes");
  EXPECT_GT(outcomes.at("acquired"), 0);
  if (harms) {
    EXPECT_GT(outcomes.at("failed").get<int>() + outcomes.at("unknown").get<int>(), 0);
  }
  EXPECT_TRUE(kept_exclusion(run));
  for (const Json& reason : run.at("generator").at("reasons")) {
    EXPECT_FALSE(has(reason, "restarted")) << reason << ": the fault did it";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, RunFault,
    testing::Values(Struck{"store_kill", "redis-set-nx-lua", "store-kill", true},
                    Struck{"node_freeze", "redlock-parallel", "node-freeze:2"},
                    Struck{"partition", "redis-set-nx-lua", "partition:0.5"},
                    Struck{"delay", "redis-set-nx-lua", "delay:50ms"},
                    Struck{"failover", "redis-wait", "failover", true, {"--replicas", "2"}}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace lockbench::test

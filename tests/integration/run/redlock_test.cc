#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;
using std::chrono::seconds;

/// Five Redis servers of the user's own.
class OwnNodes : public testing::Test {
 protected:
  OwnNodes() {
    for (int i = 0; i < 5; ++i) nodes_.push_back(own_redis());
  }

  Words run_on_them(const Words& more) {
    // A busy machine is not what is tested.
    Words arguments = {"run",   "redlock", "redlock-parallel", "--node-timeout", "500ms",
                       "--out", "r.json"};
    for (const auto& node : nodes_) {
      arguments.emplace_back("--redis");
      arguments.push_back(node->url());
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// Of those that can be asked.
  void expect_nothing_left() {
    for (const auto& node : nodes_) {
      if (!node->alive()) continue;
      EXPECT_TRUE(RedisProbe(node->port()).keys().empty());
    }
  }

  std::vector<std::unique_ptr<testbed::Server>> nodes_;
};

TEST_F(OwnNodes, AreAllUsedAndCleanAfterwards) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, run_on_them({"--duration", "400ms", "--warmup", "0ms"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(result.at("environment").at("servers").at("redis").at("endpoints").size(), 5U);
  for (const char* name : {"redlock", "redlock-parallel"}) {
    const Json& run = run_of(result, name);
    EXPECT_TRUE(kept_exclusion(run));
    EXPECT_GT(run.at("sections"), 20);
    EXPECT_GE(run.at("commands_per_section"), 9) << "each node is asked and told";
  }
  for (const auto& node : nodes_) {
    RedisProbe probe(node->port());
    EXPECT_GT(probe.calls_of("set"), 20);
  }
  expect_nothing_left();
}

TEST_F(OwnNodes, AMinorityMayBeDeadFromTheStart) {
  for (const std::size_t node : {0U, 3U}) ASSERT_TRUE(nodes_[node]->kill_hard());
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, run_on_them({"--duration", "400ms", "--warmup", "0ms"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "one of 5 nodes is missing: 127.0.0.1:");
  EXPECT_GT(run_of(read_result(scratch / "r.json"), "redlock").at("sections"), 20);
  expect_nothing_left();
}

TEST_F(OwnNodes, WithoutAMajorityNothingIsGrantedAndTheExitCodeIsTwo) {
  for (const std::size_t node : {0U, 3U, 4U}) ASSERT_TRUE(nodes_[node]->kill_hard());
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, run_on_them({"--duration", "400ms", "--warmup", "0ms"}));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  expect_in(outcome.err, "did not start: redlock: ");
  EXPECT_TRUE(read_result(scratch / "r.json").at("runs").empty());
  expect_nothing_left();
}

TEST_F(OwnNodes, AMajorityThatDiesInMidRunEndsTheGrants) {
  const Scratch scratch;
  Program program(scratch, run_on_them({"--duration", "1500ms", "--warmup", "0ms", "--hold", "1ms",
                                        "--clients", "3"}));
  {
    RedisProbe probe(nodes_[0]->port());
    ASSERT_TRUE(eventually([&] { return probe.calls_of("set") > 20; }));
  }
  for (const std::size_t node : {1U, 2U, 4U}) ASSERT_TRUE(nodes_[node]->kill_hard());
  const Outcome outcome = program.finish(seconds(20));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redlock");
  EXPECT_GT(
      run.at("outcomes").at("failed").get<int>() + run.at("outcomes").at("unknown").get<int>(), 0);
  EXPECT_TRUE(kept_exclusion(run));
  expect_nothing_left();
}

TEST_F(OwnNodes, AnInterruptLeavesNothingOnAny) {
  const Scratch scratch;
  Program program(scratch, run_on_them({"--duration", "60s", "--clients", "6", "--hold", "2ms"}));
  {
    RedisProbe probe(nodes_[2]->port());
    ASSERT_TRUE(eventually([&] { return probe.calls_of("set") > 20; }));
  }
  program.signal(SIGINT);
  EXPECT_EQ(program.finish(seconds(10)).code, 105);
  expect_nothing_left();
}

TEST(PrivateNodes, AreAsManyAsAskedFor) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"run", "redlock-parallel", "redis-set-nx-lua", "--nodes", "3",
                          "--clients", "1", "--node-timeout", "1s", "--rtt", "1ms", "--duration",
                          "400ms", "--warmup", "0ms", "--out", "r.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(result.at("environment").at("servers").at("redis").at("endpoints").size(), 3U);
  EXPECT_EQ(result.at("workload").at("nodes"), 3);
  const Json& run = run_of(result, "redlock-parallel");
  EXPECT_GE(run.at("acquire_service").at("min"), 0.001) << "each node is behind its own line";
}

}  // namespace
}  // namespace lockbench::test

#include <gtest/gtest.h>

#include <memory>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// Five Redis servers of the user's own.
class OwnNodes : public testing::Test {
 protected:
  OwnNodes() {
    for (int i = 0; i < 5; ++i) nodes_.push_back(own_redis());
  }

  Words run_on_them(const Words& more) {
    Words arguments = {"run",   "redlock", "redlock-parallel", "--node-timeout", "10s",
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
      lockbench(scratch, run_on_them({"--iterations", "50", "--warmup", "0ms"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(result.at("environment").at("servers").at("redis").at("endpoints").size(), 5U);
  for (const char* name : {"redlock", "redlock-parallel"}) {
    const Json& run = run_of(result, name);
    EXPECT_TRUE(kept_exclusion(run));
    EXPECT_GT(run.at("sections"), 0);
    EXPECT_GE(run.at("commands_per_section"), 9) << "each node is asked and told";
  }
  for (const auto& node : nodes_) {
    RedisProbe probe(node->port());
    EXPECT_GT(probe.calls_of("set"), 0);
  }
  expect_nothing_left();
}

TEST_F(OwnNodes, WithoutAMajorityNothingIsGrantedAndTheExitCodeIsTwo) {
  for (const std::size_t node : {0U, 3U, 4U}) ASSERT_TRUE(nodes_[node]->kill_hard());
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, run_on_them({"--iterations", "50", "--warmup", "0ms"}));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  expect_in(outcome.err, "did not start: redlock: ");
  EXPECT_TRUE(read_result(scratch / "r.json").at("runs").empty());
  expect_nothing_left();
}

}  // namespace
}  // namespace lockbench::test

#include <gtest/gtest.h>

#include <memory>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

TEST(OwnNodes, AreAllUsedAndCleanAfterwards) {
  std::vector<std::unique_ptr<testbed::Server>> nodes;
  std::vector<std::string> arguments = {"run",
                                        "redlock",
                                        "redlock-parallel",
                                        "--node-timeout",
                                        "10s",
                                        "--iterations",
                                        "50",
                                        "--warmup",
                                        "0ms",
                                        "--out",
                                        "r.json"};
  for (int i = 0; i < 5; ++i) {
    nodes.push_back(own_redis());
    arguments.insert(arguments.end(), {"--redis", nodes.back()->url()});
  }
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(result.at("environment").at("servers").at("redis").at("endpoints").size(), 5U);
  for (const char* name : {"redlock", "redlock-parallel"}) {
    const Json& run = run_of(result, name);
    EXPECT_TRUE(kept_exclusion(run));
    EXPECT_GT(run.at("sections"), 0);
    EXPECT_GE(run.at("commands_per_section"), 9) << "each node is asked and told";
  }
  for (const auto& node : nodes) {
    RedisProbe probe(node->port());
    EXPECT_GT(probe.calls_of("set"), 0);
    EXPECT_TRUE(probe.keys().empty());
  }
}

}  // namespace
}  // namespace lockbench::test

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "testbed/servers/zookeeper_server.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

class ZookeeperRun : public testing::Test {
 protected:
  void SetUp() override {
    if (find_strategy("zookeeper") == nullptr) GTEST_SKIP() << "left out of this build";
  }
};

TEST_F(ZookeeperRun, GoesAgainstTheUsersOwnAndLeavesNothingThere) {
  const auto server = testbed::start_zookeeper(shared_testbed());
  ASSERT_TRUE(server) << server.error();
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"run", "zookeeper", "zookeeper-herd", "--zookeeper", (*server)->url(),
                          "--clients", "4", "--keys", "3", "--ttl", "2s", "--iterations", "100",
                          "--warmup", "100ms", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& known = result.at("environment").at("servers").at("zookeeper");
  EXPECT_EQ(known.at("endpoints"), Json::array({(*server)->address()}));
  EXPECT_EQ(scratch.all_text().find((*server)->secret()), std::string::npos);
  const auto whole = [](std::string_view) { return false; };
  const auto facts = testbed::ask_until((*server)->port(), "srvr", kPatience, whole).value_or("");
  // Its own: /, /zookeeper, /zookeeper/config and /zookeeper/quota.
  EXPECT_NE(facts.find("Node count: 5\n"), std::string::npos) << facts;
}

}  // namespace
}  // namespace lockbench::test

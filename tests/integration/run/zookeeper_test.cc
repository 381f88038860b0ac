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

TEST_F(ZookeeperRun, OneIsWokenByAGrantOrAllAre) {
  constexpr int kClients = 64;
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch, {"run", "zookeeper", "zookeeper-herd", "--clients", std::to_string(kClients),
                "--out", "r.json", "--duration", "4s", "--warmup", "2s"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  for (const char* name : {"zookeeper", "zookeeper-herd"}) {
    EXPECT_TRUE(kept_exclusion(run_of(result, name)));
    EXPECT_EQ(run_of(result, name).at("audit").at("fence_regressions"), 0);
    EXPECT_GT(run_of(result, name).at("sections"), 0);
  }
  EXPECT_NEAR(run_of(result, "zookeeper").at("herd_factor").get<double>(), 1, 0.1);
  // Those on their way back to their watch are not woken.
  EXPECT_GT(run_of(result, "zookeeper-herd").at("herd_factor").get<double>(), kClients / 8.0);
  EXPECT_NE(outcome.out.find("woken/"), std::string::npos) << outcome.out;
}

TEST_F(ZookeeperRun, GoesAgainstTheUsersOwnAndLeavesNothingThere) {
  const auto server = testbed::start_zookeeper(shared_testbed());
  ASSERT_TRUE(server) << server.error();
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"run", "zookeeper", "zookeeper-herd", "--zookeeper", (*server)->url(),
                          "--clients", "4", "--keys", "3", "--ttl", "2s", "--duration", "300ms",
                          "--warmup", "100ms", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& known = result.at("environment").at("servers").at("zookeeper");
  EXPECT_EQ(known.at("endpoints"), Json::array({(*server)->address()}));
  EXPECT_EQ(scratch.all_text().find((*server)->secret()), std::string::npos);
  const auto whole = [](std::string_view) { return false; };
  const auto facts =
      testbed::ask_until((*server)->port(), "srvr", std::chrono::seconds(2), whole).value_or("");
  // Its own: /, /zookeeper, /zookeeper/config and /zookeeper/quota.
  EXPECT_NE(facts.find("Node count: 5\n"), std::string::npos) << facts;
}

}  // namespace
}  // namespace lockbench::test

#include <gtest/gtest.h>

#include <csignal>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

TEST(Interrupt, SavesReportsAndCleansUp) {
  const auto server = own_redis();
  RedisProbe probe(server->port());
  const Scratch scratch;
  Program program(scratch,
                  {"run", "redis-setnx", "none", "--redis", server->url(), "--warmup", "0ms",
                   "--duration", "60s", "--hold", "1ms", "--resource", "redis", "--out", "r.json"});
  ASSERT_TRUE(eventually([&] { return probe.calls_of("del") > 20; }));
  EXPECT_FALSE(probe.keys().empty());
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  EXPECT_NE(outcome.err.find("stopping"), std::string::npos);
  EXPECT_NE(outcome.out.find("redis-setnx"), std::string::npos) << "the table is shown";
  EXPECT_EQ(probe.keys(), std::vector<std::string>{});

  const Json result = read_result(scratch / "r.json");
  EXPECT_TRUE(result.at("interrupted"));
  ASSERT_EQ(result.at("runs").size(), 1U) << "what had not begun does not begin";
  const Json& run = result.at("runs").front();
  EXPECT_GT(run.at("sections"), 0);
  EXPECT_EQ(run.at("outcomes").at("failed"), 0);
  EXPECT_EQ(run.at("outcomes").at("unknown"), 0);
  EXPECT_TRUE(kept_exclusion(run));
}

TEST(InterruptedDose, SavesThePointsThatWerePlayed) {
  const Scratch scratch;
  Program program(scratch,
                  {"hazards", "--dose", "--strategies", "redis-set-nx-lua", "--dose-plays", "1",
                   "--at-once", "1", "--out", "r.json"},
                  {.terminal = true});
  ASSERT_TRUE(program.says("1 of 22 points played"));
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.out;
  const Json result = read_result(scratch / "r.json");
  EXPECT_TRUE(result.at("interrupted"));
  const Json& points = result.at("experiment").at("points");
  EXPECT_GE(points.size(), 1U);
  EXPECT_LT(points.size(), 22U);
  EXPECT_NE(outcome.out.find("overrun-holding / redis-set-nx-lua"), std::string::npos);
}

}  // namespace
}  // namespace lockbench::test

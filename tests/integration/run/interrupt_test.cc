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

/// A command of several steps, what it says when some are over, and where its result has them.
struct Stopped {
  std::string name;
  std::vector<std::string> command;
  std::string says;
  Json::json_pointer over;
  int left_out = 0;  ///< strategies that had not begun
  bool terminal = false;
};

class InterruptedCommand : public testing::TestWithParam<Stopped> {};

TEST_P(InterruptedCommand, SavesWhatWasOverAndLeavesNothingElse) {
  const auto& [name, command, says, over, left_out, terminal] = GetParam();
  const Scratch scratch;
  std::vector<std::string> arguments = command;
  arguments.insert(arguments.end(), {"--out", "r.json"});
  Program program(scratch, arguments, {.terminal = terminal});
  ASSERT_TRUE(program.says(says)) << program.said();
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.out << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_TRUE(result.at("interrupted"));
  EXPECT_GE(result.at(over).size(), 1U);
  int interrupted = 0;
  for (const Json& skipped : result.at("skipped")) {
    interrupted += skipped.at("reason") == "interrupted" ? 1 : 0;
  }
  EXPECT_EQ(interrupted, left_out);
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"r.json"}) << "no server's folder is left";
}

INSTANTIATE_TEST_SUITE_P(
    EachOf, InterruptedCommand,
    testing::Values(Stopped{"capacity",
                            {"capacity", "redis-queue", "redis-fenced", "--hold", "2ms", "--slo",
                             "acquire.p99<20ms", "--duration", "1s", "--warmup", "100ms"},
                            "1 steps",
                            Json::json_pointer("/capacity/0/steps"),
                            1},
                    Stopped{"quorum",
                            {"quorum", "--nodes", "1", "--duration", "400ms", "--clients", "2"},
                            "point 3 of 8",
                            Json::json_pointer("/runs")},
                    Stopped{"hazards",
                            {"hazards", "pause-holding", "overrun-holding", "--strategies",
                             "redis-set-nx-lua", "--repeat", "10", "--at-once", "1"},
                            "1 of 20 plays done",
                            Json::json_pointer("/hazards"),
                            0,
                            true}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lockbench::test

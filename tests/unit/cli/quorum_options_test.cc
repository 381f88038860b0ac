#include <chrono>

#include "tests/unit/cli/fixtures.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(QuorumCommand, TakesAListOfNodes) {
  const auto quorum = [](const std::vector<std::string>& args) {
    return parse(quorum_command(), args);
  };
  EXPECT_TRUE(quorum({})->quorum.nodes.empty());
  EXPECT_EQ(quorum({})->quorum.duration, 1s);
  const auto options =
      quorum({"--nodes",    "5",  "--nodes",        "3",   "--nodes", "5",  "--duration", "2s",
              "--clients",  "20", "--slow",         "5ms", "--ttl",   "1s", "--rtt",      "1ms",
              "--replicas", "1",  "--node-timeout", "20ms"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_THAT(options->quorum.nodes, testing::ElementsAre(5, 3)) << "each once";
  EXPECT_EQ(options->quorum.duration, 2s);
  EXPECT_EQ(options->quorum.slow, 5ms);
  EXPECT_EQ(options->workload.clients, 20);
  EXPECT_EQ(options->workload.ttl, 1s);
  EXPECT_EQ(options->workload.rtt, 1ms);
  EXPECT_EQ(options->replicas, 1);
  EXPECT_EQ(options->workload.strategy.node_timeout, Duration(20ms));
}

TEST(QuorumCommand, NamesWhatIsWrong) {
  const auto error = [](const std::vector<std::string>& args) {
    const auto options = parse(quorum_command(), args);
    return options ? "accepted" : options.error().message;
  };
  EXPECT_THAT(error({"--nodes", "0"}), HasSubstr("from 1 to 15"));
  EXPECT_THAT(error({"--nodes", "16"}), HasSubstr("from 1 to 15"));
  EXPECT_THAT(error({"--clients", "0"}), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(error({"--slow", "0s"}), HasSubstr("1ms to 1h"));
  EXPECT_THAT(error({"--redis", "redis://h"}), HasSubstr("--redis")) << "it harms its own servers";
  EXPECT_THAT(error({"redlock"}), HasSubstr("redlock"));
}

}  // namespace
}  // namespace lockbench


#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/console/deploy.h"
#include "strategies/registry.h"
#include "tests/support/variable.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

int dispatch_into_a_full_disk(const std::vector<std::string>& args) {
  if (std::freopen("/dev/full", "w", stdout) == nullptr) return -1;
  return dispatch(args);
}

TEST(Dispatch, OutputThatCannotBeWrittenIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"--help"}, {"--version"}, {"list"}, {"doctor"}, {"run", "--help"}}) {
    EXPECT_EXIT(std::_Exit(dispatch_into_a_full_disk(args)), testing::ExitedWithCode(2),
                "lockbench: .*writ")
        << args.front();
  }
}

TEST(Dispatch, HelpAndVersion) {
  const std::string overview = ran({"--help"}).out;
  for (const char* shown : {"\nMeasure:", "\n  overview ", "\n  run ", "\n  hazards ", "\nResults:",
                            "\n  compare ", "\nChoose and operate:", "\n  clean ", "docs/"}) {
    EXPECT_THAT(overview, HasSubstr(shown));
  }
  EXPECT_EQ(ran({"-h"}).out, overview);
  EXPECT_THAT(ran({"run", "--help", "all"}).out, HasSubstr("--acquire-timeout"));
  EXPECT_THAT(ran({"--duration", "0", "--help"}).out, HasSubstr("--all"));
  EXPECT_THAT(ran({"--version"}).out, testing::StartsWith("lockbench "));
}

TEST(Dispatch, AloneShowsFiveThingsToBeginWith) {
  const Ran alone = ran({});
  EXPECT_EQ(alone.code, 0);
  EXPECT_EQ(alone.err, "");
  std::size_t shown = 0;
  for (const Command& command : all_commands()) {
    const bool begins = !command.asks.empty();
    shown += begins ? 1 : 0;
    const std::string example = fmt::format("    {}\n", command.example);
    EXPECT_THAT(alone.out, begins ? testing::Matcher<std::string>(HasSubstr(example))
                                  : Not(HasSubstr(example)));
  }
  EXPECT_EQ(shown, 5U);
  EXPECT_THAT(questions("tour"), Not(HasSubstr("lockbench tour")));
}

TEST(List, ShowsEveryStrategyInBothFormats) {
  const Ran table = ran({"list"});
  const Ran json = ran({"list", "--format", "json"});
  EXPECT_EQ(json.code, 0);
  const auto strategies = nlohmann::json::parse(json.out);
  ASSERT_EQ(strategies.size(), all_strategies().size() + absent_strategies().size());
  for (const auto& strategy : strategies) {
    EXPECT_THAT(table.out, HasSubstr(strategy.at("name").get<std::string>() + "\n"));
    EXPECT_TRUE(strategy.at("traits").contains("promises_exclusion"));
    EXPECT_TRUE(strategy.at("hazards").is_array());
    EXPECT_NE(strategy.at("available"), strategy.at("unavailable_because").is_string());
  }
}

/// Strategies: one on Redis, one without a store, one of a store that this build leaves out.
class Deploy : public testing::Test {
 protected:
  Deploy() {
    redis_.name = "redis-x";
    redis_.backend = "redis";
    local_.name = "local-x";
    local_.backend = "local";
    unbuilt_.name = "store-x";
    unbuilt_.backend = "store";
    unbuilt_.not_built = "built without libstore";
    options_.workload.strategy.command_timeout = 1s;
  }

  std::string error(std::vector<Selected> selected) {
    std::vector<results::Skipped> skipped;
    const auto deployment = deploy(options_, selected, skipped);
    EXPECT_THAT(skipped, SizeIs(0));
    return deployment ? "deployed" : deployment.error();
  }

  void expect_that_a_glob_may_lack(const Descriptor& strategy, const std::string& why) {
    std::vector<Selected> selected = {{&strategy, false}, {&local_, false}};
    std::vector<results::Skipped> skipped;
    const auto deployment = deploy(options_, selected, skipped);
    ASSERT_TRUE(deployment) << deployment.error();
    ASSERT_THAT(selected, SizeIs(1));
    EXPECT_EQ(selected.front().strategy, &local_);
    ASSERT_THAT(skipped, SizeIs(1));
    EXPECT_EQ(skipped.front().strategy, strategy.name);
    EXPECT_THAT(skipped.front().reason, HasSubstr(why));
    EXPECT_THAT(error({{&local_, false}, {&strategy, true}}),
                HasSubstr(std::string(strategy.name) + " cannot run here: " + why));
    selected = {{&strategy, false}};
    EXPECT_THAT(deploy(options_, selected, skipped).error(),
                HasSubstr("nothing can run here: " + why));
  }

  LoadOptions options_;
  Descriptor redis_, local_, unbuilt_;
};

TEST_F(Deploy, WithoutAStoreThatThisBuildLeavesOut) {
  expect_that_a_glob_may_lack(unbuilt_, "built without libstore");
}

TEST_F(Deploy, WithoutAServersProgram) {
  const test::Variable path("PATH", "/nowhere");
  expect_that_a_glob_may_lack(redis_, "redis-server not found: install the package redis-server");
  for (const auto resource : {loadgen::Resource::redis, loadgen::Resource::redis_fenced}) {
    options_.workload.resource = resource;
    EXPECT_THAT(error({{&local_, false}}),
                HasSubstr("the counter's server: redis-server not found"));
  }
}

TEST_F(Deploy, AServerThatWasGivenAndIsNotThereIsAnErrorForWhatNeedsIt) {
  options_.servers["redis"] = {"redis://:hunter2@127.0.0.1:1"};
  for (const bool named : {false, true}) {
    const std::string message = error({{&local_, true}, {&redis_, named}});
    EXPECT_THAT(message, testing::StartsWith("--redis: 127.0.0.1:1"));
    EXPECT_THAT(message, Not(HasSubstr("hunter2")));
  }
  EXPECT_EQ(error({{&local_, true}}), "deployed");
  options_.workload.resource = loadgen::Resource::redis;
  EXPECT_THAT(error({{&local_, false}}), HasSubstr("the counter's server: 127.0.0.1:1"));
}

TEST(OpenFiles, ASecondConnectionIsCountedWhereTheCounterNeedsOne) {
  using deployment::open_files_for;
  const std::vector<const Descriptor*> one = {find_strategy("redis-setnx")};
  const std::vector<const Descriptor*> quorum = {find_strategy("redlock")};
  deployment::Request request{.clients = 1000, .nodes = 5};
  const std::uint64_t in_memory = open_files_for(request, one);
  request.counter = true;
  EXPECT_EQ(open_files_for(request, one), in_memory + 1000);
  request.rtt = std::chrono::milliseconds(1);
  EXPECT_EQ(open_files_for(request, one), in_memory + 3000) << "two of each client in the proxy";
  EXPECT_EQ(open_files_for(request, quorum), in_memory + 15'000) << "and that to each node";
  request.given["redis"] = {"redis://a", "redis://b", "redis://c"};
  EXPECT_EQ(open_files_for(request, quorum), in_memory + 3000) << "no proxies before the user's";
}

}  // namespace
}  // namespace lockbench::cli

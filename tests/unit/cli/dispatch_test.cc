#include "cli/dispatch.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/servers.h"
#include "strategies/registry.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

struct Ran {
  int code = 0;
  std::string out, err;
};

Ran ran(const std::vector<std::string>& args) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran result;
  result.code = dispatch(args);
  std::fflush(stdout);
  result.out = testing::internal::GetCapturedStdout();
  result.err = testing::internal::GetCapturedStderr();
  return result;
}

TEST(Dispatch, AMistakeIsOneLineOnStderr) {
  const std::vector<std::vector<std::string>> mistakes = {
      {"rnu"},
      {"redis-setnx"},
      {"redis://:hunter2@host"},
      {"run", "redis-setn"},
      {"--clients", "a\nb"},
      {"--config", "/no/such\nfile"},
      {"run", "--out", "/dev/null/x", "none"},
      {"--redis", "redis://:hunter2@127.0.0.1:1", "redis-setnx", "run"},
      {"run", "--redis", "redis://:hunter2@127.0.0.1:1", "--out", "/dev/null", "redis-setnx"},
      {"run", "--wait", "poll:1ms", "local-mutex"},
      {"list", "--clients", "1"},
      {"doctor", "redis"}};
  for (const auto& args : mistakes) {
    const Ran result = ran(args);
    EXPECT_EQ(result.code, 1) << args.front();
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, testing::StartsWith("lockbench: "));
    EXPECT_THAT(result.err, Not(HasSubstr("hunter2")));
  }
}

TEST(Dispatch, HelpAndVersion) {
  EXPECT_THAT(ran({"--help"}).out, HasSubstr("doctor"));
  EXPECT_THAT(ran({"run", "--help"}).out, HasSubstr("--acquire-timeout"));
  EXPECT_THAT(ran({"--clients", "0", "--help"}).out, HasSubstr("--acquire-timeout"));
  EXPECT_THAT(ran({"--version"}).out, testing::StartsWith("lockbench "));
}

TEST(List, ShowsEveryStrategyInBothFormats) {
  const Ran table = ran({"list"});
  const Ran json = ran({"list", "--format", "json"});
  EXPECT_EQ(json.code, 0);
  const auto strategies = nlohmann::json::parse(json.out);
  ASSERT_EQ(strategies.size(), all_strategies().size());
  for (const auto& strategy : strategies) {
    EXPECT_THAT(table.out, HasSubstr(strategy.at("name").get<std::string>() + "\n"));
    EXPECT_TRUE(strategy.at("traits").contains("promises_exclusion"));
    EXPECT_TRUE(strategy.at("hazards").is_array());
    EXPECT_NE(strategy.at("available"), strategy.at("unavailable_because").is_string());
  }
}

TEST(Doctor, FailsWhereAGivenServerCannotBeReached) {
  const Ran result = ran({"doctor", "--redis", "redis://:hunter2@127.0.0.1:1"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(result.out, Not(HasSubstr("hunter2")));
}

/// Strategies of a Redis that nobody serves, beside a local one.
class Unreachable : public testing::Test {
 protected:
  Unreachable() {
    redis_.name = "redis-x";
    redis_.backend = "redis";
    local_.name = "local-x";
    local_.backend = "local";
    options_.redis = {"redis://:hunter2@127.0.0.1:1"};
    options_.workload.strategy.command_timeout = 1s;
  }

  RunOptions options_;
  Descriptor redis_, local_;
  std::vector<results::Skipped> skipped_;
};

TEST_F(Unreachable, IsAnErrorForWhatWasNamed) {
  std::vector<Selected> selected = {{&local_, false}, {&redis_, true}};
  const auto deployment = deploy(options_, selected, skipped_);
  ASSERT_FALSE(deployment);
  EXPECT_THAT(deployment.error().message, HasSubstr("redis-x cannot run here: 127.0.0.1:1"));
}

TEST_F(Unreachable, SkipsWhatAGlobBroughtIn) {
  std::vector<Selected> selected = {{&redis_, false}, {&local_, false}};
  const auto deployment = deploy(options_, selected, skipped_);
  ASSERT_TRUE(deployment) << deployment.error().message;
  ASSERT_THAT(selected, SizeIs(1));
  EXPECT_EQ(selected.front().strategy, &local_);
  ASSERT_THAT(skipped_, SizeIs(1));
  EXPECT_EQ(skipped_.front().strategy, "redis-x");
  EXPECT_THAT(skipped_.front().reason, HasSubstr("127.0.0.1:1"));
}

TEST_F(Unreachable, IsAnErrorIfNothingIsLeft) {
  std::vector<Selected> selected = {{&redis_, false}};
  const auto deployment = deploy(options_, selected, skipped_);
  ASSERT_FALSE(deployment);
  EXPECT_THAT(deployment.error().message, HasSubstr("nothing can run here"));
}

TEST_F(Unreachable, CounterIsAnErrorAlsoForAGlob) {
  std::vector<Selected> selected = {{&local_, false}};
  options_.workload.resource = Resource::redis;
  EXPECT_FALSE(deploy(options_, selected, skipped_));
}

TEST_F(Unreachable, DoesNotMatterToWhatNeedsNoStore) {
  std::vector<Selected> selected = {{&local_, true}};
  const auto deployment = deploy(options_, selected, skipped_);
  ASSERT_TRUE(deployment);
  EXPECT_TRUE(deployment->facts.empty());
}

}  // namespace
}  // namespace lockbench

#include "cli/console/session.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "cli/console/facts.h"
#include "strategies/registry.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::ExitedWithCode;
using testing::SizeIs;

// In processes of their own, as signals are blocked for good. The exit code says how it went.

class SessionTest : public testing::Test {
 protected:
  SessionTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void warn_of_builds() {
  Session session({.quiet = true});
  for (const char* type : {"Release", "RelWithDebInfo", "Debug", ""})
    session.warn_of({"", "", type});
  std::_Exit(42);
}

TEST_F(SessionTest, WarnsOfBuildsWhoseFiguresMislead) {
  EXPECT_EXIT(warn_of_builds(), ExitedWithCode(42),
              "^warning: this is a Debug build: its figures are not to be trusted\n"
              "warning: this is a non-optimised build: its figures are not to be trusted\n$");
}

void stop_before_the_load() {
  Session session({.quiet = false}, false, "so be it");
  kill(getpid(), SIGTERM);
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, session.stop(), test::kPatience, [] { return false; });
  std::vector<Selected> selected = {{find_strategy("local-mutex"), true}};
  std::vector<results::Skipped> skipped;
  const auto deployed = session.deploy({}, selected, skipped);
  if (!session.stopped() || deployed) std::_Exit(1);
  std::_Exit(session.interrupted_early());
}

TEST_F(SessionTest, AStopBeforeTheLoadLeavesNothing) {
  EXPECT_EXIT(stop_before_the_load(), ExitedWithCode(105),
              "interrupted before the load began: nothing was measured");
}

void deploy_on_two_of_three() {
  const auto one = test::own_redis(), other = test::own_redis();
  LoadOptions options;
  options.servers["redis"] = {one->url(), other->url(),
                              fmt::format("redis://127.0.0.1:{}", test::closed_port())};
  Descriptor left_out = *find_strategy("local-mutex");
  left_out.name = "store-x";
  left_out.not_built = "built without libstore";
  std::vector<Selected> selected = {{find_strategy("redlock"), true}, {&left_out, false}};
  std::vector<results::Skipped> skipped;
  int code = 1;
  {
    Session session({.quiet = false}, false);
    const auto deployed = session.deploy(options, selected, skipped);
    if (deployed && selected.size() == 1 && skipped.size() == 1) code = 42;
  }
  std::_Exit(code);
}

TEST_F(SessionTest, SaysWhatIsMissingAndWhoWasSkipped) {
  EXPECT_EXIT(deploy_on_two_of_three(), ExitedWithCode(42),
              "warning: one of 3 nodes is missing: 127.0.0.1:[0-9]+.*\n"
              "skipped: store-x: built without libstore\n");
}

/// Under a sanitizer, and in debug builds, they must.
TEST(Builds, AreWarnedOfByAllCommandsThatMeasure) {
  const std::string server = test::shared_redis().url();
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"run", "local-mutex", "--duration", "10ms", "--warmup", "0ms"},
           {"capacity", "local-mutex", "--slo", "acquire.p99<1ns", "--duration", "10ms", "--warmup",
            "0ms", "--clients", "2", "--time", "1s"},
           {"renewal", "--redis", server, "--held", "1", "--pairs", "1", "--ttl", "300ms",
            "--duration", "10ms", "--clients", "1"},
           {"quorum", "--nodes", "1", "--duration", "10ms", "--clients", "1"}}) {
    const test::Scratch scratch;
    std::vector<std::string> arguments = words;
    arguments.insert(arguments.end(), {"--out", "r.json"});
    const test::Outcome outcome = test::lockbench(scratch, arguments);
    EXPECT_THAT(scratch.files(), SizeIs(1)) << words.front() << ": " << outcome.err;
    const auto trusted = [&] {
      return outcome.err.find("its figures are not to be trusted") == std::string::npos;
    };
    EXPECT_EQ(trusted(), figures_can_be_trusted(build_facts()))
        << words.front() << ": " << outcome.err;
  }
}

}  // namespace
}  // namespace lockbench::cli

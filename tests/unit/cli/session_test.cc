#include "cli/console/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "cli/console/facts.h"
#include "strategies/registry.h"
#include "tests/integration/support/program.h"
#include "tests/support/eventually.h"
#include "tests/support/servers.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::ExitedWithCode;
using testing::SizeIs;

// In processes of their own, as signals are blocked for good. The exit code says how it went.

/// Ends the process if no stop comes.
void wait_for_stop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, test::kPatience, [] { return false; });
  if (!stop.stop_requested()) std::_Exit(1);
}

class SessionTest : public testing::Test {
 protected:
  SessionTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void stop_before_the_load() {
  Session session({.quiet = false}, false, "so be it");
  kill(getpid(), SIGTERM);
  wait_for_stop(session.stop());
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
TEST(Builds, AreWarnedOfWhenTheyMeasure) {
  const test::Scratch scratch;
  const test::Outcome outcome = test::lockbench(
      scratch, {"run", "local-mutex", "--duration", "10ms", "--warmup", "0ms", "--out", "r.json"});
  EXPECT_THAT(scratch.files(), SizeIs(1)) << outcome.err;
  EXPECT_EQ(outcome.err.find("its figures are not to be trusted") == std::string::npos,
            build_facts().build_type.starts_with("Rel"))
      << outcome.err;
}

void stop_and_exit(int signal_number) {
  prepare_signals();
  Console console(stderr, false, false);
  const std::stop_source stop;
  {
    const StopOnSignal on_signal(stop, console);
    kill(getpid(), signal_number);
    wait_for_stop(stop.get_token());
  }
  std::_Exit(42);
}

void stop_twice_and_exit(int signal_number, std::FILE* stream) {
  prepare_signals();
  Console console(stream, false, false);
  const std::stop_source stop;
  const StopOnSignal on_signal(stop, console);
  kill(getpid(), signal_number);
  wait_for_stop(stop.get_token());
  kill(getpid(), signal_number);
  // The signal ends this; if it does not, the alarm's does.
  alarm(test::kPatience.count());
  while (true) pause();
}

/// A pipe that nobody reads, filled to the brim: whoever writes to it is stuck.
std::FILE* stuck_stream() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) std::_Exit(2);
  if (fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) std::_Exit(2);
  const std::array<char, 4096> page{};
  while (write(ends[1], page.data(), page.size()) > 0) {
  }
  if (fcntl(ends[1], F_SETFL, 0) != 0) std::_Exit(2);
  return fdopen(ends[1], "w");
}

class StopOnSignalTest : public testing::TestWithParam<int> {
 protected:
  StopOnSignalTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(StopOnSignalTest, TheFirstStops) {
  EXPECT_EXIT(stop_and_exit(GetParam()), testing::ExitedWithCode(42),
              "stopping: saving what was measured");
}

TEST_P(StopOnSignalTest, TheSecondKills) {
  EXPECT_EXIT(stop_twice_and_exit(GetParam(), stderr), testing::KilledBySignal(GetParam()), "");
}

TEST_P(StopOnSignalTest, NeitherDependsOnTheConsole) {
  EXPECT_EXIT(stop_twice_and_exit(GetParam(), stuck_stream()), testing::KilledBySignal(GetParam()),
              "");
}

void leave(int /*number*/) { std::_Exit(43); }

void stop_twice_under_a_handler(int signal_number) {
  static_cast<void>(std::signal(signal_number, leave));
  stop_twice_and_exit(signal_number, stderr);
}

TEST_P(StopOnSignalTest, TheSecondReachesAHandler) {
  EXPECT_EXIT(stop_twice_under_a_handler(GetParam()), testing::ExitedWithCode(43), "");
}

INSTANTIATE_TEST_SUITE_P(All, StopOnSignalTest, testing::Values(SIGINT, SIGTERM, SIGHUP));

void hang_up_under_nohup() {
  static_cast<void>(std::signal(SIGHUP, SIG_IGN));
  prepare_signals();
  Console console(stderr, false, false);
  const std::stop_source stop;
  {
    const StopOnSignal on_signal(stop, console);
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGTERM);
    wait_for_stop(stop.get_token());
    kill(getpid(), SIGHUP);
  }
  std::_Exit(42);
}

TEST(StopOnSignalUnderNohup, AHangUpNeitherStopsNorKills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(hang_up_under_nohup(), testing::ExitedWithCode(42), "^stopping[^\n]*\n$");
}

}  // namespace
}  // namespace lockbench::cli

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "cli/console/session.h"
#include "tests/support/eventually.h"

namespace lockbench::cli {
namespace {

/// Ends the process if no stop comes.
void wait_for_stop(const std::stop_source& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop.get_token(), test::kPatience, [] { return false; });
  if (!stop.stop_requested()) std::_Exit(1);
}

// In processes of their own, as signals are blocked for good. The exit code says whether the stop
// came.

void stop_and_exit(int signal_number) {
  prepare_signals();
  Console console(stderr, false, false);
  const std::stop_source stop;
  {
    const StopOnSignal on_signal(stop, console);
    kill(getpid(), signal_number);
    wait_for_stop(stop);
  }
  std::_Exit(42);
}

void stop_twice_and_exit(int signal_number, std::FILE* stream) {
  prepare_signals();
  Console console(stream, false, false);
  const std::stop_source stop;
  const StopOnSignal on_signal(stop, console);
  kill(getpid(), signal_number);
  wait_for_stop(stop);
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
    wait_for_stop(stop);
    kill(getpid(), SIGHUP);
  }
  std::_Exit(42);
}

TEST(StopOnSignalUnderNohup, AHangUpNeitherStopsNorKills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(hang_up_under_nohup(), testing::ExitedWithCode(42), "^stopping[^\n]*\n$");
}

TEST(StopOnSignalEnd, WithoutASignalIsQuick) {
  Console console(stderr, false, false);
  const std::stop_source stop;
  { const StopOnSignal on_signal(stop, console); }
  EXPECT_FALSE(stop.stop_requested());
}

}  // namespace
}  // namespace lockbench::cli

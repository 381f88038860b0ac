#include "cli/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>

namespace lockbench {
namespace {

// In a process of its own, as signals are blocked for good. The exit code says whether the stop
// came.
void stop_once_and_exit(int signal_number, bool again) {
  prepare_signals();
  Console console(stderr, false, false);
  const std::stop_source stop;
  const StopOnSignal on_signal(stop, console);
  kill(getpid(), signal_number);
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  const auto never = [] { return false; };
  stopped.wait_for(lock, stop.get_token(), std::chrono::seconds(10), never);
  if (!stop.stop_requested()) std::_Exit(1);
  if (again) {
    kill(getpid(), signal_number);
    stopped.wait_for(lock, std::chrono::seconds(10), never);
  }
  std::_Exit(42);
}

class StopOnSignalTest : public testing::TestWithParam<int> {
 protected:
  StopOnSignalTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(StopOnSignalTest, TheFirstStops) {
  EXPECT_EXIT(stop_once_and_exit(GetParam(), false), testing::ExitedWithCode(42),
              "stopping: saving what was measured");
}

TEST_P(StopOnSignalTest, TheSecondKills) {
  EXPECT_EXIT(stop_once_and_exit(GetParam(), true), testing::KilledBySignal(GetParam()),
              "stopping");
}

INSTANTIATE_TEST_SUITE_P(Both, StopOnSignalTest, testing::Values(SIGINT, SIGTERM));

TEST(StopOnSignalEnd, WithoutASignalIsQuick) {
  Console console(stderr, false, false);
  const std::stop_source stop;
  { const StopOnSignal on_signal(stop, console); }
  EXPECT_FALSE(stop.stop_requested());
}

}  // namespace
}  // namespace lockbench

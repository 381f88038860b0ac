#include "tests/support/slack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace lockbench::test {
namespace {

class StallWatcher : public testing::EmptyTestEventListener {
 public:
  Duration worst() const { return worst_.load(); }
  void OnTestStart(const testing::TestInfo& /*test*/) override { worst_ = Duration::zero(); }

 private:
  void watch(const std::stop_token& stop) {
    constexpr Duration kNap = std::chrono::milliseconds(1);
    while (!stop.stop_requested()) {
      const TimePoint begun = BootClock::now();
      std::this_thread::sleep_for(kNap);
      const Duration stall = BootClock::now() - begun - kNap;
      if (stall > worst_.load()) worst_ = stall;
    }
  }

  std::atomic<Duration> worst_{Duration::zero()};
  std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};
};

/// From the start of the program; owned by GoogleTest.
StallWatcher* const watcher = [] {
  auto* const made = new StallWatcher;
  testing::UnitTest::GetInstance()->listeners().Append(made);
  return made;
}();

}  // namespace

Duration slack() { return std::chrono::seconds(1) + 4 * watcher->worst(); }

}  // namespace lockbench::test

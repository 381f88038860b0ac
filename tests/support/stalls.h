#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

#include "strategies/duration.h"

namespace lockbench::test {

/// The worst stall, since the present test began, of a thread that only sleeps a millisecond at a
/// time: what a bound in real time has to allow for on a busy machine.
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

/// Watches from the start of a program that includes this; owned by GoogleTest.
inline StallWatcher* const stalls = [] {
  auto* const made = new StallWatcher;
  testing::UnitTest::GetInstance()->listeners().Append(made);
  return made;
}();

}  // namespace lockbench::test

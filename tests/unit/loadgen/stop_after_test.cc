#include "loadgen/run/stop_after.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <stop_token>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

TEST(StopAfter, ComesAfterTheTime) {
  const TimePoint begun = BootClock::now();
  const StopAfter stop(5ms, {});
  std::promise<void> stopped;
  const std::stop_callback on_stop(stop.token(), [&] { stopped.set_value(); });
  ASSERT_EQ(stopped.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_GE(BootClock::now() - begun, 5ms);
}

TEST(StopAfter, ComesWithTheOtherStop) {
  std::stop_source other;
  const StopAfter stop(1h, other.get_token());
  EXPECT_FALSE(stop.token().stop_requested());
  other.request_stop();
  EXPECT_TRUE(stop.token().stop_requested());
  EXPECT_TRUE(StopAfter(1h, other.get_token()).token().stop_requested()) << "it has come before";
}

TEST(StopAfter, DoesNotKeepItsOwnerWaiting) {
  const TimePoint begun = BootClock::now();
  { const StopAfter stop(1h, {}); }
  EXPECT_LT(BootClock::now() - begun, 30s);
}

}  // namespace
}  // namespace lockbench::loadgen

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>

#include "loadgen/run/run_stores.h"
#include "tests/support/virtual_time.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

TEST(StopAfter, ComesAfterTheTime) {
  test::on_virtual_time([] {
    Carrier& carrier = Carrier::current();
    const TimePoint begun = carrier.now();
    const StopAfter stop(5s, {});
    EXPECT_EQ(carrier.wait(nullptr, begun + 1h, stop.token()), WaitResult::stopped);
    EXPECT_EQ(carrier.now() - begun, 5s);
  });
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
  test::on_virtual_time([] {
    const TimePoint begun = Carrier::current().now();
    { const StopAfter stop(1h, {}); }
    EXPECT_EQ(Carrier::current().now(), begun);
  });
}

}  // namespace
}  // namespace lockbench::loadgen

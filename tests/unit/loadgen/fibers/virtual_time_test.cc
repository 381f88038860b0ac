#include "tests/support/virtual_time.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "strategies/carrier.h"

namespace lockbench::fibers {
namespace {

using namespace std::chrono_literals;

Carrier& here() { return Carrier::current(); }

TEST(VirtualTime, AWaitTakesExactlyItsTimeAndPassesAtOnce) {
  test::on_virtual_time([] {
    const TimePoint began = here().now();
    const WallTime of_day = here().wall_now();
    const TimePoint end = BootClock::now() + 2ms;
    while (BootClock::now() < end) {
    }
    EXPECT_EQ(here().now(), began) << "it stands still while a fiber runs";
    here().wait(nullptr, began + 1000h, {});
    EXPECT_EQ(here().now() - began, 1000h);
    EXPECT_EQ(here().wall_now() - of_day, 1000h);
  });
}

TEST(VirtualTime, ALoopThatOnlyYieldsSeesTimePass) {
  test::on_virtual_time([] {
    const TimePoint end = here().now() + 1ms;
    int yields = 0;
    for (; here().now() < end; ++yields) here().yield();
    EXPECT_EQ(yields, 1000);
  });
}

TEST(VirtualTime, ALoopOfWaitsThatAreOverSeesTimePass) {
  test::on_virtual_time([] {
    const TimePoint began = here().now();
    int waits = 0;
    for (; here().now() < began + 1ms; ++waits) {
      EXPECT_EQ(here().wait(nullptr, began, {}), WaitResult::timed_out);
    }
    EXPECT_EQ(waits, 1000);
  });
}

TEST(VirtualTime, WhatTheBodyThrowsArrives) {
  EXPECT_THROW(test::on_virtual_time([] { throw std::out_of_range("no such element"); }),
               std::out_of_range);
}

}  // namespace
}  // namespace lockbench::fibers

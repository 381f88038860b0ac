#include "tests/support/virtual_time.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "strategies/carrier.h"

namespace lockbench::fibers {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

Carrier& here() { return Carrier::current(); }

void sleep(Duration time) { here().wait(nullptr, here().now() + time, {}); }

std::unique_ptr<Task> beside(std::function<void()> body) {
  return here()
      .start([body = std::move(body)](const std::stop_token&) { body(); },
             [](const std::string& why) { ADD_FAILURE() << why; })
      .value();
}

TEST(VirtualTime, AWaitTakesExactlyItsTimeAndPassesAtOnce) {
  test::on_virtual_time([] {
    const TimePoint began = here().now();
    const WallTime of_day = here().wall_now();
    sleep(1000h);
    EXPECT_EQ(here().now() - began, 1000h);
    EXPECT_EQ(here().wall_now() - of_day, 1000h);
  });
}

TEST(VirtualTime, StandsStillWhileAFiberRuns) {
  test::on_virtual_time([] {
    const TimePoint began = here().now();
    const TimePoint end = BootClock::now() + 2ms;
    while (BootClock::now() < end) {
    }
    EXPECT_EQ(here().now(), began);
  });
}

/// What three fibers say, each with its own period, and when.
std::vector<std::string> three_that_speak() {
  std::vector<std::string> said;
  test::on_virtual_time([&] {
    const TimePoint began = here().now();
    std::vector<std::unique_ptr<Task>> tasks;
    for (const auto& [name, period] : {std::pair("a", 3s), {"b", 5s}, {"c", 3s}}) {
      tasks.push_back(beside([&said, began, name = name, period = period] {
        for (int i = 0; i < 2; ++i) {
          sleep(period);
          said.push_back(fmt::format("{}{}", name, (here().now() - began) / 1s));
        }
      }));
    }
  });
  return said;
}

TEST(VirtualTime, DeadlinesPassInTheirOrderAndTheSameEachTime) {
  const std::vector<std::string> said = three_that_speak();
  EXPECT_THAT(said, ElementsAre("a3", "c3", "b5", "a6", "c6", "b10"));
  EXPECT_EQ(three_that_speak(), said);
}

TEST(VirtualTime, AnEventEndsAWaitWhenItIsSet) {
  test::on_virtual_time([] {
    const TimePoint began = here().now();
    const auto event = here().make_event();
    const auto task = beside([&] {
      sleep(2s);
      event->set();
    });
    EXPECT_EQ(here().wait(event.get(), began + 1h, {}), WaitResult::signalled);
    EXPECT_EQ(here().now() - began, 2s);
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

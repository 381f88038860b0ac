#include "testbed/clock_shim.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

using namespace std::chrono_literals;

TEST(ClockShim, MovesTheWallClockOfOneServerWhileItRuns) {
  const auto testbed = must_start();
  const auto clock = ClockShim::make(*testbed);
  ASSERT_TRUE(clock) << clock.error();
  RedisOptions options;
  options.clock = clock->get();
  const auto redis = start_redis(*testbed, options);
  ASSERT_TRUE(redis) << redis.error();
  const std::uint16_t port = (*redis)->port();

  EXPECT_EQ(ask(port, "SET soon x EX 1000"), "+OK");
  EXPECT_EQ(ask(port, "SET late x EX 9000"), "+OK");
  EXPECT_EQ(ask(port, "EXISTS soon late"), ":2");
  (*clock)->set(2000s);
  EXPECT_TRUE(eventually([&] { return ask(port, "EXISTS soon") == ":0"; }));
  EXPECT_EQ(ask(port, "EXISTS late"), ":1");
  (*clock)->set(0s);
  EXPECT_EQ(ask(port, "SET again x EX 1000"), "+OK");
  EXPECT_TRUE(eventually([&] { return ask(port, "EXISTS again") == ":1"; }));
}

TEST(ClockShim, LeavesOtherServersAlone) {
  const auto testbed = must_start();
  const auto clock = ClockShim::make(*testbed);
  ASSERT_TRUE(clock) << clock.error();
  const auto redis = must_start_redis(*testbed);
  EXPECT_EQ(ask(redis->port(), "SET soon x EX 1000"), "+OK");
  (*clock)->set(2000s);
  EXPECT_EQ(ask(redis->port(), "EXISTS soon"), ":1");
}

}  // namespace
}  // namespace lockbench::testbed

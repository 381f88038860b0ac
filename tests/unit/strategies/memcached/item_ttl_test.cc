#include <gtest/gtest.h>

#include <chrono>

#include "strategies/memcached/client/connection.h"

namespace lockbench::memcached {
namespace {

using namespace std::chrono_literals;

TEST(ItemTtl, IsRoundedUpPlusTwoSecondsAndBelowMemcachedsAbsoluteTimes) {
  for (const auto& [ttl, kept] :
       {std::pair<Duration, Duration>{1ms, 1s}, {1s, 1s}, {1001ms, 2s}, {2300ms, 3s}, {24h, 24h}}) {
    const auto item = ItemTtl::of(ttl);
    ASSERT_TRUE(item);
    EXPECT_EQ(item->kept, kept);
    EXPECT_EQ(std::chrono::seconds(item->asked), kept + 2s);
  }
  EXPECT_EQ(ItemTtl::of(30 * 24h - 2s)->asked, kLongestExpiry);
  EXPECT_FALSE(ItemTtl::of(30 * 24h - 1s));
}

}  // namespace
}  // namespace lockbench::memcached

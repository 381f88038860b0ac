#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "strategies/memcached/client/connection.h"

namespace lockbench::memcached {
namespace {

using namespace std::chrono_literals;

TEST(MemcachedEndpoint, IsShownWithoutItsCredentials) {
  struct Case {
    const char *text, *display, *user, *password;
  };
  for (const auto& [text, display, user, password] :
       {Case{"cache", "cache:11211", "", ""},
        {"[::1]:4242", "[::1]:4242", "", ""},
        {"memcached://ann:hunter%402@[::1]", "[::1]:11211", "ann", "hunter@2"},
        {"memcaches://ann:pw@cache?min-tls=1.3", "cache:11211", "ann", "pw"}}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint) << endpoint.error();
    EXPECT_EQ(endpoint->display(), display);
    EXPECT_EQ(endpoint->user, user);
    EXPECT_EQ(endpoint->password, password);
    EXPECT_EQ(endpoint->tls != nullptr, std::string_view(text).starts_with("memcaches"));
  }
}

TEST(MemcachedEndpoint, RefusesOtherTextWithoutRepeatingIt) {
  for (const char* text :
       {"", "memcached://secret@host", "http://host", "memcached://host/secret",
        "memcached://host?cacert=secret", "ann:sec%0d%0aret@host", "ann:secret%20@host"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_THAT(endpoint.error(), testing::HasSubstr("allowed: [memcached://]"));
    EXPECT_THAT(endpoint.error(), testing::Not(testing::HasSubstr("secret")));
  }
}

TEST(ItemTtl, IsRoundedUpPlusTwoSeconds) {
  for (const auto& [ttl, kept] :
       {std::pair<Duration, Duration>{1ms, 1s}, {1s, 1s}, {1001ms, 2s}, {2300ms, 3s}, {24h, 24h}}) {
    const auto item = ItemTtl::of(ttl);
    ASSERT_TRUE(item);
    EXPECT_EQ(item->kept, kept);
    EXPECT_EQ(std::chrono::seconds(item->asked), kept + 2s);
  }
}

TEST(ItemTtl, StaysBelowMemcachedsAbsoluteTimes) {
  EXPECT_EQ(ItemTtl::of(30 * 24h - 2s)->asked, kLongestExpiry);
  EXPECT_FALSE(ItemTtl::of(30 * 24h - 1s));
}

}  // namespace
}  // namespace lockbench::memcached

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "strategies/memcached/client/endpoint.h"
#include "strategies/memcached/client/item_ttl.h"

namespace lockbench::memcached {
namespace {

using namespace std::chrono_literals;

TEST(MemcachedEndpoint, IsAHostWithAPortOrWithout) {
  EXPECT_EQ(parse_endpoint("cache")->display(), "cache:11211");
  EXPECT_EQ(parse_endpoint("127.0.0.1:4242")->display(), "127.0.0.1:4242");
  EXPECT_EQ(parse_endpoint("[::1]:4242")->display(), "[::1]:4242");
  EXPECT_EQ(parse_endpoint("[::1]")->server.port, 11211);
}

TEST(MemcachedEndpoint, MayHaveCredentialsAndTls) {
  const auto plain = parse_endpoint("memcached://ann:hunter%402@[::1]:4242");
  ASSERT_TRUE(plain) << plain.error();
  EXPECT_EQ(plain->user, "ann");
  EXPECT_EQ(plain->password, "hunter@2");
  EXPECT_EQ(plain->display(), "[::1]:4242");
  EXPECT_FALSE(plain->tls);
  const auto secure = parse_endpoint("memcaches://ann:pw@cache?min-tls=1.3");
  ASSERT_TRUE(secure && secure->tls);
  EXPECT_TRUE(secure->tls->only_1_3);
  EXPECT_EQ(secure->display(), "cache:11211");
  EXPECT_TRUE(parse_endpoint("memcaches://cache")->tls);
}

TEST(MemcachedEndpoint, RefusesOtherTextWithoutRepeatingIt) {
  for (const char* text :
       {"", ":4242", "host:", "host:0", "host:65536", "host:a", "host:1:2", "[::1", "[::1]x",
        "memcached://secret@host", "secret@host", "a b", "http://host", "memcached://host/secret",
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

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/memcached/client/connection.h"
#include "testbed/servers/memcached_server.h"
#include "tests/integration/watch/sightings.h"
#include "tests/support/servers.h"

namespace lockbench::watch {
namespace {

using testing::HasSubstr;

TEST(WatchOfMemcached, NeedsNamedKeys) {
  const auto source = make_source("memcached", {"127.0.0.1:11211"}, {.locks = {"lock:*"}});
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error(), HasSubstr("neither listed nor watched"));
}

TEST(WatchOfMemcached, LooksAtNamedKeys) {
  auto server = testbed::start_memcached(test::shared_testbed());
  ASSERT_TRUE(server) << server.error();
  const auto env = make_system_env(1);
  memcached::Connection app(*memcached::parse_endpoint((*server)->url()), test::kPatience, *env);
  Sightings seen;
  {
    Running running("memcached", {(*server)->url()}, {.keys = {"lock:a", "lock:b"}}, seen);
    ASSERT_TRUE(seen.await("lock:a", [](const Sighting& one) { return one.holders.empty(); }));
    ASSERT_TRUE(app.add("lock:a", "me", 3000));
    const auto held = seen.await_held("lock:a", "me");
    ASSERT_TRUE(held);
    EXPECT_GE(held->ttl_left, std::chrono::seconds(2000));
    EXPECT_LE(held->ttl_left, std::chrono::seconds(3001));
    EXPECT_EQ(held->changes, 0U);
    ASSERT_TRUE(app.add("lock:b", "me", 0));
    EXPECT_TRUE(seen.await("lock:b", [](const Sighting& one) { return one.no_ttl; }));
    ASSERT_TRUE(app.remove("lock:a"));
    EXPECT_TRUE(seen.await_free("lock:a", held->at));
    ASSERT_TRUE((*server)->kill_hard());
    EXPECT_TRUE(seen.comes([&] { return seen.blind_ == 1; }));
    ASSERT_TRUE((*server)->restart(false));
    EXPECT_TRUE(seen.comes([&] { return seen.sees_ == 1; }));
  }
  EXPECT_EQ(seen.facts_.accuracy, Accuracy::sampled);
}

}  // namespace
}  // namespace lockbench::watch

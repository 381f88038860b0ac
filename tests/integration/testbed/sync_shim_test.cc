#include <gtest/gtest.h>

#include "testbed/process/shims.h"
#include "testbed/servers/kinds.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

TEST(HostCrash, KeepsWhatWasSyncedAndNothingElse) {
  const auto testbed = must_start();
  RedisOptions options = open_to_all();
  options.durable = true;
  options.notes_syncs = true;
  options.config.emplace_back("appendfsync always");
  const auto redis = must(start_redis(*testbed, options));
  EXPECT_EQ(ask(redis->port(), "SET synced x"), "+OK");
  EXPECT_EQ(ask(redis->port(), "CONFIG SET appendfsync no"), "+OK");
  EXPECT_EQ(ask(redis->port(), "SET written x"), "+OK");
  ASSERT_TRUE(redis->kill_hard());
  EXPECT_GT(must(forget_unsynced(*redis)), 0U);
  ASSERT_TRUE(redis->restart(true));
  EXPECT_EQ(ask(redis->port(), "EXISTS synced"), ":1");
  EXPECT_EQ(ask(redis->port(), "EXISTS written"), ":0");
}

TEST(HostCrash, OfAServerThatNotesNoSyncIsRefused) {
  const auto testbed = must_start();
  const auto redis = must_start_redis(*testbed);
  ASSERT_TRUE(redis->kill_hard());
  EXPECT_FALSE(forget_unsynced(*redis));
}

}  // namespace
}  // namespace lockbench::testbed

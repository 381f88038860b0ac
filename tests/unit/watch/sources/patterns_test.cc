#include <gmock/gmock.h>

#include "watch/sources/keys.h"

namespace lockbench::watch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Patterns, BecomePrefixesThatDoNotOverlap) {
  EXPECT_THAT(merged_prefixes({"lock:a*", "lock:*", "job:?", "lock:b"}),
              ElementsAre("job:", "lock:"));
  EXPECT_THAT(merged_prefixes({"*", "a*"}), ElementsAre(""));
  EXPECT_EQ(redis_glob("a[1]*\\"), "a\\[1\\]*\\\\");
}

TEST(Patterns, NameBuckets) {
  EXPECT_THAT(buckets_in({"locks/*", "app-1/lock.?", "app-1/x", "a_B/"}),
              ElementsAre("a_B", "app-1", "locks"));
  EXPECT_THAT(buckets_in({"lock:*", "/zoo/locks/*", "locks", "job*", "*", "j*b/x", ""}), IsEmpty());
}

TEST(Patterns, KnowUuids) {
  EXPECT_TRUE(is_uuid("550e8400-e29b-41d4-a716-446655440000"));
  EXPECT_TRUE(is_uuid("0123456789abcdef0123456789abcdef"));
  for (const char* other :
       {"0123456789abcdef0123456789abcdeg", "", "550e8400-e29b-41d4-a716_446655440000"}) {
    EXPECT_FALSE(is_uuid(other)) << other;
  }
}

TEST(Patterns, AreProposedForNames) {
  EXPECT_EQ(generalised("lock:order:1234"), "lock:order:*");
  EXPECT_EQ(generalised("job/550e8400-e29b-41d4-a716-446655440000/lock"), "job/*/lock");
  for (const char* name : {"lock:a", "my_lock", "userLock", "redlock:1", "leader", "a:mutex"}) {
    EXPECT_TRUE(sounds_like_lock(name)) << name;
  }
  for (const char* name : {"block:1", "clock", "user:1", "release"}) {
    EXPECT_FALSE(sounds_like_lock(name)) << name;
  }
}

}  // namespace
}  // namespace lockbench::watch

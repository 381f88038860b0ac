#include <gtest/gtest.h>

#include "watch/sources/key_locks.h"

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNatsBegin{1000s};
constexpr Duration kBucketTtl = 10s;

/// A bucket's locks. Times are those since the watch began.
struct PlayedBucket {
  std::vector<Sighting> write(const std::string& value, Duration at, Duration ttl = kBucketTtl) {
    KeyEntry entry{.name = "locks/a", .value = value, .created = 1, .modified = ++revision};
    entry.ends = ttl == Duration::max() ? TimePoint::max() : kNatsBegin + at + ttl;
    return locks.take({{.deleted = false, .entry = entry}}, kNatsBegin + at);
  }
  std::vector<Sighting> remove(Duration at) {
    return locks.take({{.deleted = true, .entry = {.name = "locks/a"}}}, kNatsBegin + at);
  }
  std::vector<Sighting> expire(Duration at) { return locks.expired(kNatsBegin + at); }

  std::int64_t revision = 0;
  KeyLocks locks{{.locks = {"locks/*"}}, 100};
};

TEST(NatsLocks, AKeyIsHeldUntilItIsDeletedOrItsTtlIsOver) {
  PlayedBucket bucket;
  const Sighting taken = bucket.write("me", 0s).at(0);
  EXPECT_EQ(taken.lock, "locks/a");
  EXPECT_EQ(taken.shape, Shape::token);
  EXPECT_EQ(taken.holders.at(0).owner, "me");
  EXPECT_EQ(taken.ttl_left, kBucketTtl);
  EXPECT_FALSE(taken.no_ttl);
  EXPECT_FALSE(taken.fence) << "each renewal has another number";
  EXPECT_FALSE(taken.waiters) << "they leave no trace";
  EXPECT_EQ(bucket.write("me", 4s).at(0).ttl_left, kBucketTtl);
  EXPECT_EQ(bucket.locks.modified("locks/a"), 2);
  EXPECT_TRUE(bucket.expire(12s).empty()) << "it was renewed";
  EXPECT_TRUE(bucket.remove(13s).at(0).holders.empty());
  EXPECT_FALSE(bucket.locks.has_expired(kNatsBegin + 60s));
  EXPECT_TRUE(bucket.remove(61s).empty()) << "it was free";
  bucket.write("me", 62s);
  EXPECT_EQ(bucket.expire(72s).at(0).ended, Ending::expired);
  EXPECT_TRUE(bucket.expire(73s).empty()) << "told once";
  EXPECT_TRUE(bucket.write("me", 74s, Duration::max()).at(0).no_ttl);
  EXPECT_TRUE(bucket.expire(1000h).empty());
}

TEST(NatsLocks, ARecordLastsAsItSaysOrAsLongAsItsBucket) {
  PlayedBucket bucket;
  const std::string lease = R"({"holderIdentity":"me","leaseDurationSeconds":15})";
  const Sighting held = bucket.write(lease, 0s, Duration::max()).at(0);
  EXPECT_EQ(held.shape, Shape::record);
  EXPECT_EQ(held.ttl_left, 15s);
  EXPECT_EQ(bucket.write(lease, 5s).at(0).ttl_left, 10s);
}

}  // namespace
}  // namespace lockbench::watch

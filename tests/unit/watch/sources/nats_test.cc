#include <gmock/gmock.h>

#include "watch/sources/nats_locks.h"

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimePoint kNatsBegin{1000s};
constexpr Duration kBucketTtl = 10s;

/// The locks of a bucket. Times are those since the watch began.
struct PlayedBucket {
  std::optional<Sighting> write(const std::string& key, const std::string& value, Duration at,
                                Duration age = {}) {
    return locks.take(key, read_lock_value(value), kNatsBegin + at - age, ttl, kNatsBegin + at);
  }
  std::optional<Sighting> remove(const std::string& key, Duration at) {
    return locks.take(key, std::nullopt, kNatsBegin + at, ttl, kNatsBegin + at);
  }
  std::optional<Sighting> expire(Duration at) {
    const auto due = locks.due(kNatsBegin + at);
    return due ? locks.expire(*due, ttl, kNatsBegin + at) : std::nullopt;
  }

  Duration ttl = kBucketTtl;
  NatsLocks locks{};
};

std::string holder_in(const std::optional<Sighting>& seen) {
  if (!seen) return "nothing new";
  return seen->holders.empty() ? "nobody" : seen->holders.front().owner;
}

TEST(NatsLocks, AreInTheBucketsThatPatternsName) {
  EXPECT_THAT(buckets_in({"locks/*", "app-1/lock.?", "app-1/x", "a_B/"}),
              ElementsAre("a_B", "app-1", "locks"));
  EXPECT_THAT(buckets_in({"lock:*", "/zoo/locks/*", "locks", "job*", "*", "j*b/x", ""}), IsEmpty());
}

TEST(NatsLocks, AKeyIsHeldUntilItIsDeleted) {
  PlayedBucket bucket;
  const auto taken = bucket.write("locks/a", "me", 0s);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->lock, "locks/a");
  EXPECT_EQ(taken->shape, Shape::token);
  EXPECT_EQ(holder_in(taken), "me");
  EXPECT_EQ(taken->ttl_left, kBucketTtl);
  EXPECT_FALSE(taken->no_ttl);
  EXPECT_FALSE(taken->waiters) << "they leave no trace";
  EXPECT_EQ(bucket.write("locks/a", "me", 4s)->ttl_left, kBucketTtl);
  EXPECT_EQ(bucket.expire(12s), std::nullopt);
  const auto released = bucket.remove("locks/a", 13s);
  EXPECT_EQ(holder_in(released), "nobody");
  EXPECT_EQ(released->ended, Ending::released);
  EXPECT_EQ(bucket.expire(60s), std::nullopt);
  EXPECT_EQ(bucket.remove("locks/a", 62s), std::nullopt) << "it was free";
  EXPECT_EQ(bucket.locks.size(), 0U);
}

TEST(NatsLocks, TheBucketsTtlEndsAKeyWithoutAMessage) {
  PlayedBucket bucket;
  bucket.write("a", "me", 0s);
  EXPECT_EQ(bucket.expire(kBucketTtl), std::nullopt) << "the server may keep it a little longer";
  const auto ended = bucket.expire(kBucketTtl + nats::kKeptLonger);
  EXPECT_EQ(holder_in(ended), "nobody");
  EXPECT_EQ(ended->ended, Ending::expired);
  EXPECT_EQ(bucket.expire(60s), std::nullopt) << "told once";
  EXPECT_EQ(bucket.write("a", "me", 61s, 8s)->ttl_left, 2s) << "it is older than the watch";
  EXPECT_EQ(bucket.write("b", "me", 61s, 10s), std::nullopt) << "it is over, but not removed yet";
}

TEST(NatsLocks, ATtlThatIsRaisedCountsForAllKeysOfTheBucket) {
  PlayedBucket bucket;
  bucket.write("a", "me", 0s);
  bucket.ttl = 20s;
  EXPECT_EQ(bucket.expire(kBucketTtl + 1s), std::nullopt);
  EXPECT_TRUE(bucket.expire(21s));
  bucket.ttl = Duration::max();
  EXPECT_TRUE(bucket.write("a", "me", 22s)->no_ttl);
  EXPECT_EQ(bucket.expire(1000h), std::nullopt);
}

TEST(NatsLocks, ARecordLastsAsItSaysAndIsGivenBackWithoutAHolder) {
  PlayedBucket bucket{.ttl = Duration::max()};
  const auto record = [](const std::string& holder) {
    return R"({"holderIdentity":")" + holder + R"(","leaseDurationSeconds":15})";
  };
  const auto taken = bucket.write("a", record("me"), 0s);
  EXPECT_EQ(holder_in(taken), "me");
  EXPECT_EQ(taken->shape, Shape::record);
  EXPECT_EQ(taken->ttl_left, 15s);
  bucket.write("a", record("me"), 5s);
  EXPECT_EQ(bucket.expire(20s), std::nullopt);
  EXPECT_EQ(bucket.expire(21s)->ended, Ending::expired);
  EXPECT_EQ(holder_in(bucket.write("a", record("you"), 22s)), "you");
  const auto given_back = bucket.write("a", record(""), 23s);
  EXPECT_EQ(holder_in(given_back), "nobody");
  EXPECT_EQ(given_back->ended, Ending::released);
  EXPECT_EQ(bucket.expire(60s), std::nullopt) << "nobody held it";
}

}  // namespace
}  // namespace lockbench::watch

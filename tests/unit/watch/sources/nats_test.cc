#include <gmock/gmock.h>

#include "watch/sources/nats_locks.h"

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using NoChange = NatsLocks::NoChange;

constexpr TimePoint kNatsBegin{1000s};
constexpr Duration kBucketTtl = 10s;

/// Messages of the bucket "locks", each with the next number, taken when they are stored.
class PlayedBucket {
 public:
  explicit PlayedBucket(const Request& request = {.locks = {"locks/*"}}, Duration ttl = kBucketTtl)
      : locks(request) {
    locks.keep("locks", ttl);
  }
  tl::expected<Sighting, NoChange> write(const std::string& key, const std::string& value,
                                         Duration at) {
    return take({.key = key, .value = value}, at);
  }
  tl::expected<Sighting, NoChange> remove(const std::string& key, Duration at) {
    return take({.key = key, .deleted = true}, at);
  }
  /// A message from before the watch, of this age.
  tl::expected<Sighting, NoChange> find(const std::string& key, const std::string& value,
                                        Duration age) {
    return take({.key = key, .value = value, .stored_at = kNatsBegin - age, .old = true}, 0s);
  }
  /// It was overwritten before the server sent it.
  void skip() { ++revision; }
  std::optional<Sighting> expire(Duration at) {
    const auto due = locks.due(kNatsBegin + at);
    return due ? locks.expire(*due, kNatsBegin + at) : std::nullopt;
  }

  NatsLocks locks;
  std::uint64_t revision = 0;

 private:
  tl::expected<Sighting, NoChange> take(NatsMessage told, Duration at) {
    told.bucket = "locks";
    told.revision = ++revision;
    if (!told.old) told.stored_at = kNatsBegin + at;
    return locks.take(told, kNatsBegin + at);
  }
};

std::string holder_in(const Sighting& seen) {
  return seen.holders.empty() ? "nobody" : seen.holders.front().owner;
}

TEST(NatsBuckets, AreThoseThatPatternsName) {
  const NatsBuckets some({"locks/*", "app-1/lock.?", "job*", "*x/y"});
  EXPECT_THAT(some.named(), ElementsAre("app-1", "locks"));
  EXPECT_TRUE(some.need_a_list());
  EXPECT_FALSE(NatsBuckets({"locks/*"}).need_a_list());
  const NatsBuckets jobs({"job*"});
  EXPECT_TRUE(jobs.have("jobs"));
  EXPECT_FALSE(jobs.have("other"));
  EXPECT_FALSE(jobs.have("job.s"));
  EXPECT_TRUE(NatsBuckets({}).have("any"));
  EXPECT_TRUE(NatsBuckets({"lock:*", "/zoo/locks/*", "locks"}).empty()) << "of other stores";
}

TEST(NatsLocks, AKeyIsHeldUntilItIsDeleted) {
  PlayedBucket bucket;
  const auto taken = bucket.write("a", "me", 0s);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->lock, "locks/a");
  EXPECT_EQ(taken->shape, Shape::token);
  EXPECT_EQ(holder_in(*taken), "me");
  EXPECT_EQ(taken->ttl_left, kBucketTtl);
  EXPECT_FALSE(taken->no_ttl);
  EXPECT_FALSE(taken->waiters) << "they leave no trace";
  EXPECT_EQ(taken->fence, 1U);
  const auto renewed = bucket.write("a", "me", 4s);
  EXPECT_EQ(renewed->fence, 1U) << "the grant's, as long as it is held";
  EXPECT_EQ(renewed->ttl_left, kBucketTtl);
  EXPECT_EQ(bucket.expire(12s), std::nullopt);
  const auto released = bucket.remove("a", 13s);
  EXPECT_EQ(holder_in(*released), "nobody");
  EXPECT_EQ(released->ended, Ending::released);
  EXPECT_EQ(bucket.expire(60s), std::nullopt);
  EXPECT_EQ(bucket.write("a", "me", 61s)->fence, 4U);
  EXPECT_EQ(bucket.remove("b", 62s).error(), NoChange::not_followed) << "it was free";
}

TEST(NatsLocks, TheBucketsTtlEndsAKeyWithoutAMessage) {
  PlayedBucket bucket;
  bucket.write("a", "me", 0s);
  EXPECT_EQ(bucket.expire(kBucketTtl), std::nullopt) << "the server may keep it a little longer";
  const auto ended = bucket.expire(kBucketTtl + nats::kKeptLonger);
  ASSERT_TRUE(ended);
  EXPECT_EQ(holder_in(*ended), "nobody");
  EXPECT_EQ(ended->ended, Ending::expired);
  EXPECT_EQ(bucket.expire(60s), std::nullopt) << "told once";
  // Another client may be faster than that, but does not write over a lock that still lasts.
  bucket.write("a", "you", 20s);
  const auto taken_over = bucket.write("a", "me", 20s + kBucketTtl + 1ms);
  EXPECT_EQ(holder_in(*taken_over), "me");
  EXPECT_EQ(taken_over->ended, Ending::expired);
  const auto stolen = bucket.write("a", "you", 31s);
  EXPECT_EQ(stolen->ended, std::nullopt);
  EXPECT_EQ(stolen->changes, 1U);
}

TEST(NatsLocks, ATtlThatIsRaisedCountsForAllKeysOfTheBucket) {
  PlayedBucket bucket;
  bucket.write("a", "me", 0s);
  bucket.locks.keep("locks", 20s);
  EXPECT_EQ(bucket.expire(kBucketTtl + 1s), std::nullopt);
  EXPECT_TRUE(bucket.expire(21s));
  PlayedBucket without({.locks = {"*"}}, Duration::max());
  EXPECT_TRUE(without.write("a", "me", 0s)->no_ttl);
  EXPECT_EQ(without.expire(1000h), std::nullopt);
}

TEST(NatsLocks, WhatIsOlderThanTheWatchHasItsAgeAndIsNoChange) {
  PlayedBucket bucket;
  const auto found = bucket.find("a", "me", 8s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->changes, 0U);
  EXPECT_EQ(found->ttl_left, 2s);
  EXPECT_TRUE(bucket.expire(2s + nats::kKeptLonger));
  EXPECT_EQ(holder_in(*bucket.find("b", "me", 10s)), "nobody") << "not removed yet";
}

TEST(NatsLocks, WhatTheServerDidNotSendIsCountedAndProvesNoTheft) {
  PlayedBucket bucket;
  bucket.write("a", "me", 0s);
  bucket.skip();
  const auto next = bucket.write("a", "you", 1s);
  EXPECT_EQ(next->changes, 2U) << "a release and a grant";
  EXPECT_EQ(bucket.locks.take_skipped(), 1U);
  EXPECT_EQ(bucket.locks.take_skipped(), 0U);
  EXPECT_EQ(bucket.write("a", "me", 2s)->changes, 1U);
  // A server may repeat messages while a consumer begins.
  EXPECT_EQ(
      bucket.locks.take({.bucket = "locks", .key = "a", .value = "you", .revision = 3}, {}).error(),
      NoChange::not_followed);
}

TEST(NatsLocks, ARecordLastsAsItSaysAndIsGivenBackWithoutAHolder) {
  PlayedBucket bucket({.locks = {"*"}}, Duration::max());
  const auto record = [](const std::string& holder) {
    return R"({"holderIdentity":")" + holder + R"(","leaseDurationSeconds":15})";
  };
  const auto taken = bucket.write("a", record("me"), 0s);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->shape, Shape::record);
  EXPECT_EQ(holder_in(*taken), "me");
  EXPECT_EQ(taken->ttl_left, 15s);
  EXPECT_FALSE(taken->fence);
  bucket.write("a", record("me"), 5s);
  EXPECT_EQ(bucket.expire(19s), std::nullopt);
  EXPECT_EQ(bucket.expire(20s)->ended, Ending::expired);
  EXPECT_EQ(holder_in(*bucket.write("a", record("you"), 21s)), "you");
  const auto given_back = bucket.write("a", record(""), 22s);
  EXPECT_EQ(holder_in(*given_back), "nobody");
  EXPECT_EQ(given_back->ended, Ending::released);
  EXPECT_EQ(bucket.expire(60s), std::nullopt) << "nobody held it";
}

TEST(NatsLocks, AreNoMoreThanThereIsRoomForAndNoOtherKeys) {
  PlayedBucket bucket({.locks = {"locks/*"}, .exclude = {"*.config"}, .most_locks = 1});
  EXPECT_EQ(bucket.write("a.config", "x", 0s).error(), NoChange::not_followed);
  EXPECT_EQ(bucket.write("a.page", R"({"a":1})", 0s).error(), NoChange::no_lock);
  EXPECT_TRUE(bucket.write("a", "me", 0s));
  EXPECT_EQ(bucket.write("b", "me", 0s).error(), NoChange::no_room);
  EXPECT_EQ(holder_in(*bucket.write("a", R"({"a":1})", 1s)), "nobody");
  EXPECT_TRUE(bucket.write("b", "me", 2s));
}

}  // namespace
}  // namespace lockbench::watch

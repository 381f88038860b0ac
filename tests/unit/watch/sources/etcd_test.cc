
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "watch/sources/key_locks.h"

namespace lockbench::watch {
namespace {

using std::chrono::seconds;

constexpr TimePoint kThen{seconds(1000)};

KeyEntry entry(const std::string& name, std::int64_t created, etcd::LeaseId lease = 0) {
  return {.name = name, .value = "me", .created = created, .modified = created, .lease = lease};
}
KeyChange put(const std::string& name, std::int64_t revision, etcd::LeaseId lease = 0) {
  return {.deleted = false, .entry = entry(name, revision, lease)};
}
KeyChange removed(const std::string& name, std::int64_t revision) {
  return {.deleted = true, .entry = {.name = name, .modified = revision}};
}

TEST(EtcdPlaces, AreFoundForEachLayout) {
  const auto queued = etcd_place_of(entry("locks/a/694d7e", 1, 0x694d7e));
  ASSERT_TRUE(queued);
  EXPECT_EQ(queued->lock, "locks/a");
  EXPECT_EQ(queued->shape, Shape::etcd_queue);
  // With another lease or none, it is an ordinary key.
  EXPECT_EQ(etcd_place_of(entry("locks/a/694d7e", 1, 5))->lock, "locks/a/694d7e");
  EXPECT_EQ(etcd_place_of(entry("locks/a/694d7e", 1))->shape, Shape::etcd_key);
  EXPECT_EQ(etcd_place_of(entry("k/0123456789abcdef0123456789abcdef", 1, 5))->lock, "k");
  const auto shared = etcd_place_of(entry("k/queue/s/token", 1, 5));
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->lock, "k");
  EXPECT_TRUE(shared->shared);
  EXPECT_FALSE(etcd_place_of(entry("k/queue/x/token", 1, 5))->shared);
  EXPECT_FALSE(etcd_place_of(entry("k/guard/x/token", 1, 5)));
  for (const char* own : {"/app/queue/orders", "/app/queue/mails", "/app/guard/orders"}) {
    EXPECT_EQ(etcd_place_of(entry(own, 1, 5))->lock, own);
  }
}

TEST(KeyLocks, TheOldestKeyHoldsAndTheOthersWait) {
  KeyLocks locks({.locks = {"a*"}}, 100);
  auto seen = locks.take({put("a/1", 11, 1), put("a/2", 12, 2), put("b/3", 13, 3)}, kThen);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1].holders.front().owner, "1");
  EXPECT_EQ(seen[1].waiters, 1U);
  seen = locks.take({removed("a/1", 14)}, kThen);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].holders.front().owner, "2");
  EXPECT_EQ(seen[0].waiters, 0U);
  EXPECT_EQ(seen[0].fence, 12U);
  seen = locks.take({removed("a/2", 15), removed("a/2", 16)}, kThen);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_TRUE(seen[0].holders.empty());
  EXPECT_EQ(locks.keys(), 0U);
}

TEST(KeyLocks, WhatOneTransactionDoesIsOneChange) {
  KeyLocks locks({.locks = {"*"}}, 100);
  locks.take({put("a/1", 11, 1), put("a/2", 12, 2)}, kThen);
  const auto seen = locks.take({removed("a/1", 13), removed("a/2", 13)}, kThen);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].changes, 2U);
  EXPECT_TRUE(seen[0].holders.empty());
}

TEST(KeyLocks, ALeaseTellsHowItEnded) {
  KeyLocks locks({.locks = {"*"}}, 100);
  locks.take({put("a/1", 1, 1)}, kThen);
  EXPECT_EQ(locks.ending_of(1, kThen), std::nullopt);
  locks.lives(1, seconds(5), kThen);
  EXPECT_EQ(locks.state_of("a", kThen + seconds(2))->ttl_left, seconds(3));
  EXPECT_EQ(locks.ending_of(1, kThen + seconds(3)), Ending::released);
  EXPECT_EQ(locks.ending_of(1, kThen + std::chrono::milliseconds(5500)), std::nullopt);
  EXPECT_EQ(locks.ending_of(1, kThen + seconds(7)), Ending::session_lost);
}

TEST(KeyLocks, WhatEtcdRoundsIsNoRenewal) {
  KeyLocks locks({.locks = {"*"}}, 100);
  locks.take({put("a/1", 1, 1)}, kThen);
  const TimePoint end = kThen + std::chrono::milliseconds(9900);
  const auto told_at = [&](int ms) {
    const TimePoint at = kThen + std::chrono::milliseconds(ms);
    locks.lives(1, std::chrono::floor<seconds>(end - at), at);
    return at + *locks.state_of("a", at)->ttl_left;
  };
  const TimePoint first = told_at(0);
  for (int ms = 100; ms < 6000; ms += 100) EXPECT_EQ(told_at(ms), first) << ms;
  const TimePoint renewed = kThen + seconds(6);
  locks.lives(1, seconds(9), renewed);
  EXPECT_EQ(locks.state_of("a", renewed)->ttl_left, seconds(9));
}

TEST(KeyLocks, InTheLastSecondOfALeaseWhatIsLeftIsNotKnown) {
  KeyLocks locks({.locks = {"*"}}, 100);
  locks.take({put("a/1", 1, 1)}, kThen);
  locks.lives(1, seconds(5), kThen);
  const auto last = locks.state_of("a", kThen + std::chrono::milliseconds(5500));
  EXPECT_EQ(last->ttl_left, std::nullopt) << "an end that moves with each look is a renewal";
  EXPECT_FALSE(last->no_ttl);
}

TEST(KeyLocks, ALeaseThatANewLeaderExtendsIsNotRenewed) {
  KeyLocks locks({.locks = {"*"}}, 100);
  locks.take({put("a/1", 1, 1)}, kThen);
  locks.lives(1, seconds(5), kThen, 7);
  EXPECT_FALSE(locks.state_of("a", kThen)->extended_by_store);
  // A leader gives each lease its whole time again.
  const TimePoint elected = kThen + seconds(4), later = elected + seconds(4);
  locks.lives(1, seconds(6), elected, 8);
  EXPECT_TRUE(locks.state_of("a", elected)->extended_by_store);
  locks.lives(1, seconds(2), later, 8);
  EXPECT_TRUE(locks.state_of("a", later)->extended_by_store) << "for all locks of the lease";
  locks.lives(1, seconds(5), later, 8);
  EXPECT_FALSE(locks.state_of("a", later)->extended_by_store) << "its client renewed it";
}

KeyEntry record(const std::string& holder, std::int64_t revision, int lasts = 15) {
  KeyEntry entry{.name = "leases/a", .value = {}, .created = 3, .modified = revision};
  entry.value = R"({"kind":"Lease","spec":{"holderIdentity":")" + holder +
                R"(","leaseDurationSeconds":)" + std::to_string(lasts) + R"(,"renewTime":"x"}})";
  return entry;
}

TEST(KeyLocks, ARecordIsHeldByWhomItNamesUntilItIsNotRenewed) {
  KeyLocks locks({.locks = {"leases/*"}}, 100);
  const auto write = [&](const KeyEntry& entry, int second) {
    return locks.take({{.deleted = false, .entry = entry}}, kThen + seconds(second)).at(0);
  };
  const Sighting taken = write(record("a", 3), 0), renewed = write(record("a", 4), 10);
  for (const Sighting& seen : {taken, renewed}) {
    EXPECT_EQ(seen.shape, Shape::record);
    EXPECT_EQ(seen.holders.at(0).owner, "a");
    EXPECT_EQ(seen.ttl_left, seconds(15));
    EXPECT_FALSE(seen.no_ttl);
    EXPECT_FALSE(seen.waiters) << "they leave no trace";
  }
  EXPECT_TRUE(locks.expired(kThen + seconds(24)).empty());
  const auto ended = locks.expired(kThen + seconds(25));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_TRUE(ended[0].holders.empty());
  EXPECT_EQ(ended[0].ended, Ending::expired);
  EXPECT_TRUE(locks.expired(kThen + seconds(26)).empty()) << "told once";
  EXPECT_EQ(write(record("b", 5), 27).holders.at(0).owner, "b");
  EXPECT_TRUE(write(record("", 6, 1), 30).holders.empty()) << "given back";
}

TEST(KeyLocks, KeysWithOtherValuesAreNoLocks) {
  KeyLocks locks({.locks = {"*"}, .exclude = {"*/config"}}, 100);
  KeyEntry page = entry("a/page", 1), config = entry("a/config", 2), lock = entry("a/lock", 3);
  page.value = R"({"a":1})";
  std::vector<KeyChange> changes;
  for (const KeyEntry& one : {page, config, lock}) changes.push_back({false, one});
  const auto seen = locks.take(changes, kThen);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].lock, "a/lock");
  EXPECT_EQ(locks.take_no_locks(), std::vector<std::string>{"a/page"});
}

TEST(KeyLocks, NoMoreKeysAreFollowedThanThereIsRoomFor) {
  KeyLocks locks({.locks = {"*"}}, 2);
  locks.take({put("a", 1), put("b", 2), put("c", 3)}, kThen);
  EXPECT_EQ(locks.keys(), 2U);
  EXPECT_EQ(locks.take_unfollowed(), 1U);
  locks.take({removed("a", 4), put("c", 5)}, kThen);
  EXPECT_EQ(locks.keys(), 2U);
  EXPECT_EQ(locks.take_unfollowed(), 0U);
}

// Any changes in any order.
TEST(KeyLocks, ManyRandomChangesLeaveNothingBehind) {
  std::mt19937 random(7);  // NOLINT: the same each time
  KeyLocks locks({.locks = {"*"}}, 1000);
  const auto number = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  std::set<std::string> names;
  for (std::int64_t revision = -5; revision < 20'000; ++revision) {
    const std::string name = std::string(1, static_cast<char>(number(256))) + "/" +
                             (number(2) != 0 ? "queue/x/" : "") + std::to_string(number(9));
    names.insert(name);
    KeyChange change = number(2) != 0 ? put(name, revision, number(9)) : removed(name, revision);
    if (number(10) == 0) change.entry.created = number(3) - 1;
    for (const Sighting& seen : locks.take({change}, kThen)) EXPECT_FALSE(seen.lock.empty());
  }
  for (const std::string& name : names) locks.take({removed(name, 30'000)}, kThen);
  EXPECT_EQ(locks.keys(), 0U);
}

}  // namespace
}  // namespace lockbench::watch

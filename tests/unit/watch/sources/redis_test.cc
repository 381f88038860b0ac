#include <gmock/gmock.h>

#include <random>
#include <set>

#include "strategies/redis/client/protocol.h"
#include "watch/sources/redis_book.h"
#include "watch/sources/redis_lock.h"

namespace lockbench::watch {
namespace {

using redis::Reply;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

TimePoint at(int ms) { return TimePoint(std::chrono::seconds(1000)) + milliseconds(ms); }

Reply parsed(const std::string& bytes) {
  redis::ReplyReader reader;
  reader.feed(bytes);
  return reader.next().value().value();
}
Reply number(std::int64_t value) { return parsed(":" + std::to_string(value) + "\r\n"); }
Reply text(const std::string& value) {
  return parsed("$" + std::to_string(value.size()) + "\r\n" + value + "\r\n");
}
Reply list(const std::vector<std::string>& values) {
  std::string bytes = "*" + std::to_string(values.size()) + "\r\n";
  for (const auto& value : values) {
    bytes += "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  }
  return parsed(bytes);
}

TEST(RedisMessages, TellWhichKeysChanged) {
  const auto some = read_invalidation(
      parsed("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"));
  ASSERT_TRUE(some);
  EXPECT_THAT(some->keys, ElementsAre("a", "b"));
  const auto all =
      read_invalidation(parsed("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*-1\r\n"));
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->all);
  for (const auto& other : {list({"message", "news", "a"}), list({"subscribe", "x"}), number(1)}) {
    EXPECT_FALSE(read_invalidation(other));
  }
  const auto event = read_message(list({"pmessage", "p", "__keyspace@0__:a:b", "del"}));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->channel, "__keyspace@0__:a:b");
  EXPECT_EQ(event->payload, "del");
  EXPECT_FALSE(read_message(list({"pmessage", "p"})));
}

TEST(RedisLocks, AreReadFromEachKindOfKey) {
  const auto token = read_redis_lock("k", KeyKind::text, {number(1500), text("me")});
  ASSERT_TRUE(token);
  EXPECT_EQ(token->holders.front().owner, "me");
  EXPECT_EQ(token->ttl_left, milliseconds(1500));
  EXPECT_TRUE(read_redis_lock("k", KeyKind::text, {number(-1), text("me")})->no_ttl);
  EXPECT_THAT(read_redis_lock("k", KeyKind::text, {number(-2), Reply()})->holders, IsEmpty());

  const auto hash =
      read_redis_lock("k", KeyKind::hash, {number(9), list({"id:1", "2", "id:7", "1"})});
  ASSERT_TRUE(hash);
  EXPECT_EQ(hash->holders.size(), 2U);
  EXPECT_EQ(hash->holders.front().entries, 2U);
  const auto shared =
      read_redis_lock("k", KeyKind::hash, {number(9), list({"mode", "read", "id:1", "1"})});
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->holders.front().shared);
  // Not locks.
  EXPECT_FALSE(read_redis_lock("k", KeyKind::hash, {number(9), list({"name", "Ann"})}));
  EXPECT_FALSE(read_redis_lock("k", KeyKind::hash, {number(9), list({"odd"})}));
  EXPECT_FALSE(read_redis_lock("k", KeyKind::text, {number(9), number(3)}));
}

TEST(RedisLocks, KeysBesideThemAreNone) {
  EXPECT_EQ(companion_of("lock:a:fencing")->lock, "lock:a");
  EXPECT_TRUE(companion_of("lock:a:queue")->queue);
  EXPECT_TRUE(companion_of("redisson_lock_queue:{a}"));
  EXPECT_TRUE(companion_of("lock:a:wake:token"));
  EXPECT_FALSE(companion_of("lock:a"));
  EXPECT_FALSE(companion_of(":queue"));
}

TEST(RedisLocks, NotificationsMustCoverAllThatLocksNeed) {
  EXPECT_TRUE(notifies_of_locks("AK"));
  EXPECT_TRUE(notifies_of_locks("g$hxK"));
  for (const char* const flags : {"AE", "xK", ""}) EXPECT_FALSE(notifies_of_locks(flags));
}

std::optional<Sighting> held_by(const std::string& owner, int ttl = 1000) {
  return read_redis_lock("k", KeyKind::text, {number(ttl), text(owner)});
}
std::optional<Sighting> free_key() {
  return read_redis_lock("k", KeyKind::text, {number(-2), Reply()});
}

Sighting only(const std::vector<Sighting>& seen) {
  EXPECT_EQ(seen.size(), 1U);
  return seen.empty() ? Sighting() : seen.front();
}

class TrackedKey : public testing::Test {
 protected:
  /// Reports changes, then a look with this state.
  std::vector<Sighting> change(int times, std::optional<Sighting> state, int when) {
    for (int i = 0; i < times; ++i) book_.changed("k", at(when));
    return look(std::move(state), when);
  }
  std::vector<Sighting> look(std::optional<Sighting> state, int when) {
    if (!book_.next()) return {};
    return book_.looked("k", KeyKind::text, std::move(state), at(when), at(when));
  }

  RedisBook book_{100, RedisBook::Way::tracking};
};

TEST_F(TrackedKey, TheMessagesOfAnExpiryThatWasLookedAtAreNoChanges) {
  change(1, held_by("me"), 0);
  book_.expire(at(900));
  EXPECT_TRUE(book_.nothing_waits());
  book_.expire(at(1010));
  const Sighting ended = only(look(free_key(), 1010));
  EXPECT_EQ(ended.ended, Ending::expired);
  EXPECT_EQ(ended.changes, 0U);
  book_.changed("k", KeyEvent::expired, at(1011));
  for (const Sighting& seen : change(1, free_key(), 1012)) EXPECT_EQ(seen.changes, 0U);
  EXPECT_EQ(only(change(1, held_by("you"), 1200)).changes, 1U);
}

TEST_F(TrackedKey, AGrantAndAReleaseAreOneChangeEach) {
  const Sighting seen = only(change(1, held_by("a"), 0));
  EXPECT_EQ(seen.changes, 1U);
  EXPECT_EQ(seen.at, at(0));
  EXPECT_TRUE(book_.is_held("k"));
  EXPECT_FALSE(only(change(1, free_key(), 300)).ended) << "long before its end: the ledger knows";
  EXPECT_EQ(book_.size(), 0U);
}

TEST_F(TrackedKey, WhatIsOverwrittenBySomethingElseIsFree) {
  change(1, held_by("a"), 0);
  EXPECT_THAT(only(change(1, std::nullopt, 300)).holders, IsEmpty());
  EXPECT_EQ(book_.size(), 0U);
  EXPECT_THAT(change(1, std::nullopt, 400), IsEmpty()) << "it never was a lock";
}

TEST_F(TrackedKey, AnEndAfterItsTtlIsAnExpiry) {
  change(1, held_by("a", 1000), 0);
  EXPECT_EQ(only(change(1, free_key(), 1002)).ended, Ending::expired);
}

TEST_F(TrackedKey, ARenewalMovesItsEnd) {
  change(1, held_by("a", 1000), 0);
  change(1, held_by("a", 1000), 500);
  book_.expire(at(1010));
  EXPECT_TRUE(book_.nothing_waits());
}

TEST_F(TrackedKey, TheExpiryOfWhatWasGivenBackIsForgotten) {
  constexpr int kHour = 3'600'000;
  for (int ms = 0; ms < 1000; ++ms) {
    change(1, held_by("a", kHour), ms);
    change(1, free_key(), ms);
  }
  EXPECT_GT(book_.next_expiry(), at(kHour + 500));
}

TEST_F(TrackedKey, OfAHoldingThatOneMessageToldNothingStays) {
  EXPECT_THAT(change(1, free_key(), 0), IsEmpty());
  book_.expire(at(500));
  EXPECT_EQ(book_.size(), 1U) << "the message of its release may still come";
  book_.expire(at(1500));
  EXPECT_EQ(book_.size(), 0U);
}

TEST_F(TrackedKey, OfAShortHoldingBothMessagesAreAwaited) {
  EXPECT_THAT(change(1, free_key(), 0), IsEmpty());
  EXPECT_EQ(only(change(1, free_key(), 1)).changes, 2U);
}

TEST_F(TrackedKey, ALookAheadOfItsMessageWaitsForThat) {
  change(1, held_by("a"), 0);
  book_.look_at("k");
  EXPECT_THAT(look(free_key(), 10), IsEmpty());
  EXPECT_EQ(only(change(1, free_key(), 11)).changes, 1U);
}

TEST(NotifiedKey, EachEventIsASighting) {
  RedisBook book(100, RedisBook::Way::notifications);
  for (const auto& [event, when] :
       {std::pair(KeyEvent::written, 0), std::pair(KeyEvent::released, 5),
        std::pair(KeyEvent::written, 6), std::pair(KeyEvent::expired, 8),
        std::pair(KeyEvent::written, 9)}) {
    book.changed("k", event, at(when));
  }
  book.next();
  const auto seen = book.looked("k", KeyKind::text, held_by("b"), at(10), at(10));
  ASSERT_EQ(seen.size(), 5U);
  EXPECT_EQ(seen[0].holders.front().owner, "") << "nobody knows any more";
  EXPECT_EQ(seen[1].ended, Ending::released);
  EXPECT_EQ(seen[3].ended, Ending::expired);
  EXPECT_EQ(seen[4].holders.front().owner, "b");
  EXPECT_EQ(seen[4].at, at(9));
}

TEST(RedisBook, HasABound) {
  RedisBook book(2, RedisBook::Way::tracking);
  EXPECT_TRUE(book.changed("a", at(0)));
  EXPECT_TRUE(book.changed("b", at(0)));
  EXPECT_FALSE(book.changed("c", at(0)));
  EXPECT_TRUE(book.changed("a", at(1)));
}

TEST(RedisBook, NamesAllThatAreHeldInTurn) {
  RedisBook book(10, RedisBook::Way::tracking);
  std::set<std::string> named;
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    book.changed(key, at(0));
    book.next();
    book.looked(key, KeyKind::hash, held_by("me"), at(0), at(0));
  }
  for (int i = 0; i < 3; ++i) {
    const auto some = book.held_keys(KeyKind::hash, 2);
    EXPECT_EQ(some.size(), 2U);
    named.insert(some.begin(), some.end());
  }
  EXPECT_EQ(named.size(), 5U);
  EXPECT_THAT(book.held_keys(KeyKind::text, 2), IsEmpty());
}

TEST(RedisBook, AnythingMayHappenInAnyOrder) {
  std::mt19937 random(7);  // NOLINT: the same each time
  for (const auto way :
       {RedisBook::Way::scan, RedisBook::Way::tracking, RedisBook::Way::notifications}) {
    RedisBook book(20, way);
    for (int i = 0; i < 20'000; ++i) {
      const std::string key(1, static_cast<char>('a' + random() % 30));
      switch (random() % 6) {
        case 0:
          book.changed(key, at(i));
          break;
        case 1:
          book.changed(key, static_cast<KeyEvent>(random() % 5), at(i));
          break;
        case 2:
          book.look_at(key);
          break;
        case 3:
          book.expire(at(i));
          break;
        case 4:
          if (random() % 50 == 0) book.all_changed(at(i));
          break;
        default:
          if (const auto turn = book.next()) {
            auto state =
                random() % 2 == 0 ? held_by("x", static_cast<int>(random() % 40)) : free_key();
            if (random() % 20 == 0) state.reset();
            book.looked(turn->key, KeyKind::text, state, at(i), at(i + 1));
          }
      }
      ASSERT_LE(book.size(), 20U);
    }
  }
}

}  // namespace
}  // namespace lockbench::watch

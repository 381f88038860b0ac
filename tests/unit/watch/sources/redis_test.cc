#include <gmock/gmock.h>

#include <set>

#include "tests/unit/watch/sources/redis_replies.h"

namespace lockbench::watch {
namespace {

using redis::Reply;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

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
  for (const std::string key : {"lock:a:fencing", "lock:a:counter"}) {
    EXPECT_FALSE(read_redis_lock(key, KeyKind::text, {number(-1), text("41")}));
    EXPECT_TRUE(read_redis_lock(key, KeyKind::text, {number(-1), text("me")}));
    EXPECT_TRUE(read_redis_lock(key, KeyKind::text, {number(1500), text("41")}));
  }
  EXPECT_TRUE(read_redis_lock("lock:a", KeyKind::text, {number(-1), text("41")}));
  EXPECT_FALSE(read_redis_lock("lock:a:numbers", KeyKind::hash,
                               {number(-1), list({"place", "7", "fencing", "5"})}));
  EXPECT_EQ(companion_of("lock:a:fencing")->lock, "lock:a");
  EXPECT_TRUE(companion_of("lock:a:queue")->queue);
  EXPECT_TRUE(companion_of("redisson_lock_queue:{a}"));
  EXPECT_EQ(companion_of("lock:a:wake:token")->lock, "lock:a");
  EXPECT_FALSE(companion_of("lock:a"));
  EXPECT_FALSE(companion_of(":queue"));
}

TEST(RedisSource, TwoDatabasesOfAServerAreTwoEndpoints) {
  const auto endpoint = [](const std::string& url) {
    return make_source("redis", url, {}).value()->endpoint();
  };
  EXPECT_EQ(endpoint("redis://h:1"), "h:1");
  EXPECT_EQ(endpoint("redis://h:1/0"), "h:1");
  EXPECT_EQ(endpoint("redis://h:1/2"), "h:1/2");
  EXPECT_EQ(endpoint("unix:///run/redis.sock?db=2"), "unix:/run/redis.sock?db=2");
}

TEST(RedisLocks, NotificationsMustCoverAllThatLocksNeed) {
  EXPECT_TRUE(notifies_of_locks("AK"));
  EXPECT_TRUE(notifies_of_locks("g$hxK"));
  for (const char* const flags : {"AE", "xK", ""}) EXPECT_FALSE(notifies_of_locks(flags));
}

Sighting only(const std::vector<Sighting>& seen) {
  EXPECT_EQ(seen.size(), 1U);
  return seen.empty() ? Sighting() : seen.front();
}

class TrackedKey : public testing::Test {
 protected:
  TrackedKey() { book_.all_found(); }
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

TEST_F(TrackedKey, ALateLookIsNoTimeAndWhatItMergesIsMissed) {
  const Sighting prompt = only(change(1, held_by("a"), 0));
  EXPECT_FALSE(prompt.late || prompt.first_look);
  for (const int when : {100, 115, 130}) book_.changed("k", at(when));
  const Sighting late = only(look(held_by("b"), 200));
  EXPECT_TRUE(late.late);
  EXPECT_EQ(late.at, at(200));
  EXPECT_EQ(late.changes, 3U);
  EXPECT_EQ(book_.take_missed(), 1U) << "the other two came at once";
}

TEST(RedisBook, WhatWasThereBeforeTheWatchBeganUnseen) {
  RedisBook book(100, RedisBook::Way::tracking);
  const auto change = [&](std::optional<Sighting> state, int when) {
    book.changed("k", at(when));
    book.next(at(when));
    return book.looked("k", KeyKind::text, std::move(state), at(when), at(when));
  };
  EXPECT_THAT(change(free_key(), 0), IsEmpty()) << "it may have been held before";
  book.expire(at(2000));
  EXPECT_THAT(book.take_ready(), IsEmpty());
  EXPECT_FALSE(only(change(held_by("b"), 2000)).first_look) << "it was seen to be free";
  book.found("old", at(2030));
  EXPECT_EQ(book.first_looks_left(), 1U);
  book.all_found();
  book.changed("old", at(2040));
  book.next(at(2040));
  const Sighting old = only(book.looked("old", KeyKind::text, held_by("a"), at(2040), at(2040)));
  EXPECT_TRUE(old.first_look) << "the change may have been a renewal";
  EXPECT_EQ(book.first_looks_left(), 0U);
}

/// Whether the book takes it for a part of another lock.
bool is_part(const RedisBook& book, const std::string& key) {
  return book.is_companion(key, companion_of(key).value());
}

TEST(RedisBook, AKeyWithTheNameOfACompanionIsALockUnlessThatLockIsKnown) {
  RedisBook book(100, RedisBook::Way::tracking);
  EXPECT_TRUE(is_part(book, "redisson_lock_queue:{app:orders}"));
  EXPECT_FALSE(is_part(book, "app:orders:queue"));
  book.changed("app:orders", at(0));
  EXPECT_TRUE(is_part(book, "app:orders:queue"));
  EXPECT_TRUE(is_part(book, "app:orders:wake:token"));
  EXPECT_FALSE(is_part(book, "app:mails:queue"));
  book.next(at(0));
  book.looked("app:orders", KeyKind::text, std::nullopt, at(0), at(0));
  book.changed("app:orders", at(10));
  EXPECT_FALSE(is_part(book, "app:orders:queue")) << "it was looked at: it is no lock";
}

TEST(RedisBook, OneCounterTellsOfThoseLikeIt) {
  RedisBook book(100, RedisBook::Way::tracking);
  book.found("lock:order:17:fencing", at(0));
  book.next(at(0));
  book.looked("lock:order:17:fencing", KeyKind::text, std::nullopt, at(0), at(0));
  EXPECT_TRUE(is_part(book, "lock:order:18:fencing"));
  EXPECT_FALSE(is_part(book, "lock:order:18:queue"));
  EXPECT_FALSE(is_part(book, "lock:mail:18:fencing"));
}

TEST(RedisBook, HeldKeysComeFirstThenTheLatestChanges) {
  RedisBook book(100, RedisBook::Way::tracking);
  book.changed("held", at(0));
  book.next(at(0));
  book.looked("held", KeyKind::text, held_by("a"), at(0), at(0));
  for (int i = 0; i < 3; ++i) book.changed(std::to_string(i), at(100 + i));
  book.changed("held", at(104));
  EXPECT_EQ(book.waits_since(), at(104));
  EXPECT_EQ(book.next(at(105))->key, "held");
  EXPECT_EQ(book.waits_since(), TimePoint::max());
  EXPECT_EQ(book.next(at(105))->key, "2");
  EXPECT_EQ(book.next(at(122))->key, "0") << "so late that its order does not matter";
  EXPECT_EQ(book.next(at(122))->key, "1");
  EXPECT_FALSE(book.next(at(122)));
}

class NotifiedKey : public testing::Test {
 protected:
  NotifiedKey() { book_.all_found(); }
  void hear(KeyEvent event, int when) { book_.changed("k", event, at(when)); }
  std::vector<Sighting> look(std::optional<Sighting> state, int when) {
    if (!book_.next(at(when))) return {};
    return book_.looked("k", KeyKind::text, std::move(state), at(when), at(when));
  }

  RedisBook book_{100, RedisBook::Way::notifications};
};

TEST_F(NotifiedKey, EachEventIsASightingWithoutALook) {
  for (const auto& [event, when] :
       {std::pair(KeyEvent::written, 0), std::pair(KeyEvent::released, 5),
        std::pair(KeyEvent::written, 6), std::pair(KeyEvent::expired, 8),
        std::pair(KeyEvent::written, 9)}) {
    hear(event, when);
  }
  const auto seen = book_.take_ready();
  ASSERT_EQ(seen.size(), 5U);
  EXPECT_EQ(seen[0].holders.front().owner, "") << "nobody looked";
  EXPECT_EQ(seen[1].ended, Ending::released);
  EXPECT_EQ(seen[1].at, at(5));
  EXPECT_EQ(seen[3].ended, Ending::expired);
  EXPECT_EQ(seen[4].at, at(9));
  const Sighting named = only(look(held_by("b"), 10));
  EXPECT_EQ(named.holders.front().owner, "b");
  EXPECT_EQ(named.at, at(9));
  EXPECT_EQ(named.ttl_left, milliseconds(1001));
  EXPECT_EQ(named.changes, 0U) << "it adds to the grant";
}

TEST_F(NotifiedKey, AnAnswerFromBeforeOrAfterAnEventIsNotUsed) {
  hear(KeyEvent::written, 0);
  book_.take_ready();
  book_.next(at(1));
  hear(KeyEvent::released, 2);
  hear(KeyEvent::written, 3);
  EXPECT_EQ(book_.take_ready().size(), 2U);
  EXPECT_THAT(book_.looked("k", KeyKind::text, held_by("a or b"), at(1), at(4)), IsEmpty());
  EXPECT_EQ(only(look(held_by("b"), 5)).holders.front().owner, "b");
}

TEST_F(NotifiedKey, AWriteOverAHeldLockIsAChangeOfItsOwn) {
  hear(KeyEvent::written, 0);
  EXPECT_EQ(book_.take_ready().size(), 1U);
  look(held_by("a"), 1);
  hear(KeyEvent::written, 50);
  hear(KeyEvent::timed, 50);
  EXPECT_THAT(book_.take_ready(), IsEmpty()) << "it may be a renewal";
  const Sighting thief = only(look(held_by("b"), 51));
  EXPECT_EQ(thief.changes, 1U);
  EXPECT_EQ(thief.at, at(50));
}

TEST_F(NotifiedKey, TheEndOfALockFromBeforeTheWatchIsOne) {
  RedisBook book(100, RedisBook::Way::notifications);
  book.found("k", at(0));
  book.changed("k", KeyEvent::released, at(1));
  const auto seen = book.take_ready();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen[0].first_look);
  EXPECT_EQ(seen[1].ended, Ending::released);
  EXPECT_EQ(book.first_looks_left(), 0U);
}

TEST_F(NotifiedKey, ALockThatIsGoneWithoutAnEventHasNoKnownEnd) {
  hear(KeyEvent::written, 0);
  look(held_by("a"), 1);
  book_.found("k", at(100));
  const Sighting gone = only(look(free_key(), 100));
  EXPECT_TRUE(gone.late);
  EXPECT_FALSE(gone.ended);
}

TEST(RedisBook, WithTheNameOfACompanionAGrantIsNotReportedBeforeALook) {
  RedisBook book(100, RedisBook::Way::notifications);
  book.all_found();
  const std::string key = "app:queue";
  book.changed(key, KeyEvent::written, at(0));
  EXPECT_THAT(book.take_ready(), IsEmpty()) << "it may be a counter";
  book.next(at(1));
  const Sighting held =
      only(book.looked(key, KeyKind::text, held_by("a", 1000, key), at(1), at(1)));
  EXPECT_EQ(held.at, at(0));
  EXPECT_EQ(held.changes, 1U);
  book.changed("app", at(2));
  EXPECT_FALSE(is_part(book, key)) << "it is held";
  book.changed(key, KeyEvent::released, at(3));
  book.changed(key, KeyEvent::written, at(4));
  EXPECT_EQ(book.take_ready().size(), 2U) << "now it is known to be a lock";
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
    const auto some = book.held_hashes(2);
    EXPECT_EQ(some.size(), 2U);
    named.insert(some.begin(), some.end());
  }
  EXPECT_EQ(named.size(), 5U);
}

}  // namespace
}  // namespace lockbench::watch

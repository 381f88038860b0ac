#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "strategies/redis/client/feed.h"
#include "strategies/redis/client/protocol.h"
#include "watch/ledger.h"
#include "watch/sources/redis_assembly.h"
#include "watch/sources/redis_book.h"
#include "watch/sources/redis_lock.h"
#include "watch/sources/redis_monitor.h"
#include "watch/sources/redis_votes.h"

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
  const auto some = redis::read_invalidation(
      parsed("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"));
  ASSERT_TRUE(some);
  EXPECT_THAT(some->keys, ElementsAre("a", "b"));
  const auto all = redis::read_invalidation(
      parsed("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*-1\r\n"));
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->all);
  for (const auto& other : {list({"message", "news", "a"}), list({"subscribe", "x"}), number(1)}) {
    EXPECT_FALSE(redis::read_invalidation(other));
  }
  const auto event = redis::read_message(list({"pmessage", "p", "__keyspace@0__:a:b", "del"}));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->channel, "__keyspace@0__:a:b");
  EXPECT_EQ(event->payload, "del");
  EXPECT_FALSE(redis::read_message(list({"pmessage", "p"})));
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
  // What is no lock.
  EXPECT_FALSE(read_redis_lock("k", KeyKind::hash, {number(9), list({"name", "Ann"})}));
  EXPECT_FALSE(read_redis_lock("k", KeyKind::hash, {number(9), list({"odd"})}));
  EXPECT_FALSE(read_redis_lock("k", KeyKind::text, {number(9), number(3)}));
}

TEST(RedisLocks, KeysBesideThemAreNone) {
  EXPECT_EQ(companion_of("lock:a:fencing")->lock, "lock:a");
  EXPECT_EQ(companion_of("lock:a:queue")->what, Companion::What::queue);
  EXPECT_TRUE(companion_of("redisson_lock_queue:{a}"));
  EXPECT_TRUE(companion_of("lock:a:wake:token"));
  EXPECT_FALSE(companion_of("lock:a"));
  EXPECT_FALSE(companion_of(":queue"));
}

TEST(RedisLocks, NotificationsMustCoverAllThatLocksNeed) {
  EXPECT_TRUE(notifies_of_locks("AK", 'K'));
  EXPECT_TRUE(notifies_of_locks("g$hxE", 'E'));
  EXPECT_FALSE(notifies_of_locks("AK", 'E'));
  EXPECT_FALSE(notifies_of_locks("xK", 'K'));
  EXPECT_FALSE(notifies_of_locks("", 'K'));
}

TEST(RedisLocks, MonitorShowsWhatIsDoneToThem) {
  using What = MonitoredCommand::What;
  const auto read = [](const std::string& line) {
    return read_monitored("17.5 [0 127.0.0.1:1] " + line);
  };
  EXPECT_EQ(read(R"("set" "k" "to\"k" "nx" "PX" "9")")->what, What::attempt);
  EXPECT_EQ(read(R"("set" "k" "to\"k" "nx")")->words[1], "to\"k");
  EXPECT_EQ(read(R"("SET" "k" "\x01\n")")->what, What::written);
  EXPECT_EQ(read(R"("DEL" "k")")->what, What::released);
  EXPECT_EQ(read(R"("EVALSHA" "abc" "1" "k" "token")")->key, "k");
  EXPECT_FALSE(read(R"("GET" "k")"));
  EXPECT_FALSE(read(R"("EVALSHA" "abc")"));
  EXPECT_TRUE(read_monitored(R"(1 [0 lua] "SET" "k" "v" "NX")"));
  for (const char* line :
       {"", "[", "]", "][", "[]", R"([] ")", R"([] "\)", R"([] "set)", R"([] "SET" "\x)"}) {
    EXPECT_FALSE(read_monitored(line)) << line;
  }
}

std::optional<Sighting> held_by(const std::string& owner, int ttl = 1000) {
  return read_redis_lock("k", KeyKind::text, {number(ttl), text(owner)});
}
std::optional<Sighting> free_key() {
  return read_redis_lock("k", KeyKind::text, {number(-2), Reply()});
}

class TrackedKey : public testing::Test {
 protected:
  /// Messages of changes, and what a look shows then.
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
  const auto ended = look(free_key(), 1010);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].ended, Ending::expired);
  EXPECT_EQ(ended[0].changes, 0U);
  book_.changed("k", KeyEvent::expired, at(1011));
  for (const Sighting& seen : change(1, free_key(), 1012)) EXPECT_EQ(seen.changes, 0U);
  const auto taken = change(1, held_by("you"), 1200);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].changes, 1U);
}

TEST_F(TrackedKey, AGrantThatMonitorShowsLateIsNoRefusedAttempt) {
  change(1, held_by("me"), 0);
  MonitorView view;
  const auto shows = [&](const std::string& owner) {
    view.take(*read_monitored("17.5 [0 127.0.0.1:1] \"set\" \"k\" \"" + owner + "\" \"nx\""),
              book_);
  };
  shows("me");
  EXPECT_TRUE(view.take_found().empty());
  shows("other");
  EXPECT_EQ(view.take_found()["k"].refused, 1U);
}

TEST_F(TrackedKey, EachWindowOfMonitorBeginsAnew) {
  MonitorView view;
  const auto shows = [&](const std::string& command) {
    view.take(*read_monitored("17.5 [0 127.0.0.1:1] " + command), book_);
  };
  const auto shows_many = [&] {
    for (int i = 0; i < 10'000; ++i) {
      shows("\"set\" \"other:" + std::to_string(i) + "\" \"x\" \"nx\"");
    }
  };
  shows(R"("del" "k")");
  shows_many();
  change(1, held_by("me"), 0);
  view.open();
  shows(R"("set" "k" "you" "nx")");
  EXPECT_EQ(view.take_found()["k"].refused, 1U);
  shows_many();
  shows(R"("set" "k" "you" "nx")");
  EXPECT_EQ(view.take_found()["k"].refused, 1U) << "it was known before there were too many";
}

TEST_F(TrackedKey, AGrantAndAReleaseAreOneChangeEach) {
  auto seen = change(1, held_by("a"), 0);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].changes, 1U);
  EXPECT_EQ(seen[0].at, at(0));
  EXPECT_TRUE(book_.is_held_by("k", "a"));
  seen = change(1, free_key(), 300);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_FALSE(seen[0].ended) << "long before its end: the ledger knows";
  EXPECT_EQ(book_.size(), 0U);
}

TEST_F(TrackedKey, WhatIsOverwrittenBySomethingElseIsFree) {
  change(1, held_by("a"), 0);
  const auto seen = change(1, std::nullopt, 300);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_THAT(seen[0].holders, IsEmpty());
  EXPECT_EQ(book_.size(), 0U);
  EXPECT_THAT(change(1, std::nullopt, 400), IsEmpty()) << "it never was a lock";
}

TEST_F(TrackedKey, AnEndAfterItsTtlIsAnExpiry) {
  change(1, held_by("a", 1000), 0);
  const auto seen = change(1, free_key(), 1002);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].ended, Ending::expired);
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
  const auto seen = change(1, free_key(), 1);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].changes, 2U);
}

TEST_F(TrackedKey, ALookAheadOfItsMessageWaitsForThat) {
  change(1, held_by("a"), 0);
  book_.look_at("k");
  EXPECT_THAT(look(free_key(), 10), IsEmpty());
  const auto seen = change(1, free_key(), 11);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].changes, 1U);
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

Sighting vote(const std::string& owner, int when, int ttl = 1000) {
  Sighting sighting;
  sighting.lock = "k";
  sighting.at = at(when);
  sighting.changes = 1;
  if (owner.empty()) return sighting;
  sighting.holders.push_back({.owner = owner});
  sighting.ttl_left = milliseconds(ttl);
  return sighting;
}

/// Of nodes that have told all that they hold.
Votes votes_of_three() {
  Votes votes(3, 100);
  for (std::size_t node = 0; node < 3; ++node) votes.told_all(node);
  return votes;
}

TEST(QuorumVotes, AMajorityHolds) {
  Votes votes = votes_of_three();
  EXPECT_FALSE(votes.seen(0, vote("a", 0)));
  const auto held = votes.seen(2, vote("a", 1));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->holders.front().owner, "a");
  EXPECT_EQ(held->votes, 2U);
  EXPECT_EQ(held->nodes, 3U);
  EXPECT_FALSE(votes.seen(1, vote("a", 2)));
  EXPECT_FALSE(votes.seen(0, vote("", 500)));
  const auto free = votes.seen(1, vote("", 501));
  ASSERT_TRUE(free);
  EXPECT_THAT(free->holders, IsEmpty());
  votes.seen(2, vote("", 502));
  EXPECT_EQ(votes.size(), 0U);
}

TEST(QuorumVotes, ANodeThatTellsOfTheGrantLateDoesNotRepeatIt) {
  Votes votes = votes_of_three();
  votes.seen(0, vote("a", 0));
  EXPECT_TRUE(votes.seen(2, vote("a", 1)));
  EXPECT_TRUE(votes.seen(0, vote("", 50))) << "released";
  EXPECT_FALSE(votes.seen(1, vote("a", 51)));
  EXPECT_FALSE(votes.seen(1, vote("", 52)));
  votes.seen(2, vote("", 53));
  votes.seen(0, vote("a", 60));
  EXPECT_TRUE(votes.seen(1, vote("a", 61))) << "taken again";
}

TEST(QuorumVotes, AMinorityThatStaysIsTold) {
  Votes votes = votes_of_three();
  votes.seen(0, vote("a", 0));
  votes.seen(1, vote("b", 0));
  EXPECT_THAT(votes.settled(at(50)), IsEmpty());
  const auto told = votes.settled(at(150));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].votes, 1U);
  EXPECT_EQ(told[0].holders.size(), 1U);
  EXPECT_EQ(votes.settled(at(300)).size(), 1U) << "as long as it stays";
  EXPECT_FALSE(votes.seen(0, vote("", 310)));
  const auto left = votes.seen(1, vote("", 320));
  ASSERT_TRUE(left);
  EXPECT_THAT(left->holders, IsEmpty());
  EXPECT_EQ(left->changes, 0U) << "it was no holding";
  EXPECT_THAT(votes.settled(at(500)), IsEmpty());
}

TEST(QuorumVotes, WhatNodesHaveNotToldMayMakeAMajority) {
  Votes votes(3, 100);
  votes.told_all(0);
  votes.seen(0, vote("a", 0));
  EXPECT_THAT(votes.settled(at(500)), IsEmpty());
  votes.told_all(1);
  votes.told_all(2);
  EXPECT_EQ(votes.settled(at(700)).size(), 1U);
  votes.blind(2);
  EXPECT_THAT(votes.settled(at(900)), IsEmpty());
}

TEST(QuorumVotes, ANodeThatIsLostEndsNoHolding) {
  Votes votes = votes_of_three();
  votes.seen(0, vote("a", 0));
  EXPECT_TRUE(votes.seen(1, vote("a", 1)));
  votes.blind(1);
  EXPECT_FALSE(votes.seen(0, vote("a", 500))) << "renewed, perhaps on both";
  const auto free = votes.seen(0, vote("", 600));
  ASSERT_TRUE(free);
  EXPECT_THAT(free->holders, IsEmpty());
  EXPECT_EQ(votes.size(), 0U);
}

/// Three nodes, and a ledger of the locks that they have together.
class WatchedQuorum : public testing::Test {
 protected:
  WatchedQuorum() {
    for (std::size_t node = 0; node < 3; ++node) {
      tell_facts(node, Accuracy::at_least);
      assembly_.node(node).told_all("");
    }
  }
  void tell_facts(std::size_t node, Accuracy accuracy) {
    assembly_.node(node).facts(
        {.store = "redis", .endpoint = "a node", .way = "script", .accuracy = accuracy});
  }
  /// On nodes from `first` to the last.
  void see(const Sighting& sighting, std::size_t first = 0) {
    for (std::size_t node = first; node < 3; ++node) assembly_.node(node).seen("", sighting);
  }
  void settle(int from, int to) {
    for (int ms = from; ms < to; ms += 20) assembly_.settle(at(ms));
  }
  Figures figures(int when) {
    const Picture all = ledger_.read(at(when));
    return all.families.empty() ? Figures() : all.families.front().figures;
  }
  Accuracy accuracy() { return ledger_.read(at(0)).sources.front().facts.accuracy; }

  /// Whose key was looked at, though no change was told.
  static Sighting looked(const std::string& owner, int when) {
    Sighting sighting = vote(owner, when);
    sighting.changes = 0;
    return sighting;
  }

  Ledger ledger_{{.salt = 1}};
  Assembly assembly_{ledger_, "nodes", 3, 100};
};

TEST_F(WatchedQuorum, IsSeenAsWellAsItsWorstNode) {
  tell_facts(1, Accuracy::sampled);
  tell_facts(2, Accuracy::exact);
  EXPECT_EQ(accuracy(), Accuracy::sampled);
  tell_facts(1, Accuracy::exact);
  EXPECT_EQ(accuracy(), Accuracy::at_least);
}

TEST_F(WatchedQuorum, ATokenThatStaysOnAMinorityIsFound) {
  see(vote("a", 0, 60'000), 2);
  settle(0, 500);
  EXPECT_EQ(figures(500).minority_votes, 0U) << "it may still be asking the others";
  settle(500, 1000);
  EXPECT_EQ(figures(1000).minority_votes, 1U);
  EXPECT_EQ(figures(1000).acquisitions, 0U);
  const Picture all = ledger_.read(at(1000));
  EXPECT_TRUE(std::ranges::any_of(
      all.findings, [](const Finding& one) { return one.kind == Finding::Kind::no_majority; }));
  see(vote("a", 1000, 59'000));
  EXPECT_EQ(figures(1000).acquisitions, 1U) << "it got the others";
}

TEST_F(WatchedQuorum, ASecondMinorityIsJudgedByItsOwnTime) {
  see(vote("a", 0, 60'000), 2);
  settle(0, 300);
  see(vote("", 300), 2);
  see(vote("b", 5000, 60'000), 2);
  settle(5000, 5300);
  EXPECT_EQ(figures(5300).minority_votes, 0U);
}

TEST_F(WatchedQuorum, AnOutageEndsNoHolding) {
  see(vote("a", 0));
  for (std::size_t node = 0; node < 3; ++node) {
    assembly_.node(node).blind("", at(900), "it is gone");
  }
  // Node by node.
  for (const int index : {0, 1}) {
    const int when = 3000 + 1000 * index;
    Assembly::Node& node = assembly_.node(static_cast<std::size_t>(index));
    node.sees("", at(when));
    node.seen("", looked("a", when + 1));
  }
  const Figures seen = figures(4100);
  EXPECT_EQ(seen.held_now, 1U);
  EXPECT_EQ(seen.acquisitions, 1U);
  EXPECT_EQ(seen.releases + seen.expired_while_held + seen.undecided, 0U);
}

TEST_F(WatchedQuorum, WhatWasHeldBeforeTheWatchIsNoAcquisition) {
  see(looked("a", 0));
  EXPECT_EQ(figures(100).held_now, 1U);
  EXPECT_EQ(figures(100).acquisitions, 0U);
}

}  // namespace
}  // namespace lockbench::watch

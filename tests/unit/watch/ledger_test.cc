#include <algorithm>
#include <tuple>

#include "tests/unit/watch/ledger_fixture.h"

namespace lockbench::watch {
namespace {

using testing::HasSubstr;

TEST_F(ExactLedgerTest, ALockOnTwoServersIsALockOnEach) {
  const std::string other_server = "127.0.0.1:2";
  ledger_->facts(
      {.store = "redis", .endpoint = other_server, .way = "script", .accuracy = Accuracy::exact});
  see(held(1s, "a"));
  ledger_->seen(other_server, held(1s, "a"));
  see(free(3s));
  const Picture all = picture();
  ASSERT_EQ(all.families.size(), 2U);
  for (const FamilyPicture& family : all.families) {
    const bool other = family.endpoint == other_server;
    EXPECT_TRUE(other || family.endpoint == script_server) << family.endpoint;
    EXPECT_EQ(family.locks, 1U);
    EXPECT_EQ(family.acquisitions, 1U);
    EXPECT_EQ(family.releases, other ? 0U : 1U);
    EXPECT_EQ(family.held_now, other ? 1U : 0U);
  }
  ASSERT_EQ(all.worst.size(), 2U);
  for (const LockPicture& lock : all.worst) {
    EXPECT_EQ(lock.figures.held_now, lock.endpoint == other_server ? 1U : 0U);
  }
}

/// The reports of a source about one lock, and the expected events.
struct Story {
  std::string what;
  Accuracy accuracy;
  std::vector<Sighting> seen;
  Counts follows;
  std::string found{};
};

TEST_F(LedgerTest, SaysHowHoldingsBeganAndEnded) {
  using enum Accuracy;
  const auto by_store = [](Sighting sighting) {
    sighting.extended_by_store = true;
    return sighting;
  };
  const std::vector<Story> stories{
      {"an end shortly before the TTL may be either",
       at_least,
       {held(1s, "a", 2s), free(2950ms)},
       {.acquisitions = 1, .undecided = 1},
       "thin_margin"},
      {"unless the store tells of a release",
       at_least,
       {held(1s, "a", 2s), ended(free(2950ms), Ending::released)},
       {.acquisitions = 1, .releases = 1, .thin_margins = 1}},
      {"or of an expiry",
       at_least,
       {held(1s, "a", 2s), ended(free(2950ms), Ending::expired)},
       {.acquisitions = 1, .expired_while_held = 1}},
      {"an expiry long after the last sample may have been a release",
       sampled,
       {held(1s, "a", 2s), unchanged(free(30s))},
       {.acquisitions = 1, .undecided = 1}},
      {"who comes at once after an expiry took over",
       exact,
       {held(1s, "a", 2s), free(3s), held(3500ms, "b"), free(5s)},
       {.acquisitions = 2, .releases = 1, .expired_while_held = 1, .taken_over = 1},
       "taken_over"},
      {"two seconds later is not at once",
       exact,
       {held(10s, "a", 2s), free(12s), held(14s, "b")},
       {.acquisitions = 2, .expired_while_held = 1}},
      {"another owner without a release is theft where each change is seen",
       exact,
       {held(1s, "a"), held(2s, "b")},
       {.acquisitions = 2, .owner_changed = 1},
       "stolen"},
      {"nobody steals from contenders with keys of their own",
       exact,
       {shaped(held(1s, "a"), Shape::etcd_queue), shaped(held(2s, "b"), Shape::etcd_queue)},
       {.acquisitions = 2, .releases = 1}},
      {"where changes come as one it may be theft, or a release and a grant",
       at_least,
       {held(1s, "a"), held(2s, "b")},
       {.acquisitions = 2}},
      {"two changes are a release and a grant",
       at_least,
       {held(1s, "a"), changes(held(2s, "b"), 2)},
       {.acquisitions = 2, .releases = 1}},
      {"an owner that was not looked at is no thief, nor robbed",
       exact,
       {held(1s, "a"), free(2s), held(2s, ""), held(3s, "c")},
       {.acquisitions = 2, .releases = 1}},
      {"who is named after an expiry took over",
       exact,
       {held(1s, "a", 2s), free(3s), held(3500ms, ""), unchanged(held(3500ms, "b"))},
       {.acquisitions = 2, .expired_while_held = 1, .taken_over = 1},
       "taken_over"},
      {"not if nobody knows who lost it",
       exact,
       {held(1s, ""), ended(free(3s), Ending::expired), held(3500ms, "b")},
       {.acquisitions = 2, .expired_while_held = 1}},
      {"nor if somebody else had it in between",
       exact,
       {held(1s, "a", 2s), free(3s), held(3100ms, ""), free(3200ms), held(3500ms, "b")},
       {.acquisitions = 3, .releases = 1, .expired_while_held = 1}},
      {"a late look shows a grant, but neither an expiry nor who took over",
       at_least,
       {held(1s, "a", 2s), late(held(4s, "b"))},
       {.acquisitions = 2, .undecided = 1}},
      {"a free lock that changed was held; nobody knows how that ended",
       at_least,
       {free(1s), late(free(4s))},
       {.acquisitions = 1}},
      {"it was released if it had no time to expire",
       at_least,
       {held(1s, "a", 2s), free(2s), changes(free(3s), 2)},
       {.acquisitions = 2, .releases = 2}},
      {"else it may have expired",
       at_least,
       {held(1s, "a", 2s), free(2s), changes(free(4s), 2)},
       {.acquisitions = 2, .releases = 1}},
      {"what is held from the start is no acquisition",
       at_least,
       {unchanged(held(0s, "a")), free(5s)},
       {.releases = 1}},
      {"the end of a session is no release",
       exact,
       {held(1s, "a"), ended(free(2s), Ending::session_lost)},
       {.acquisitions = 1, .session_lost = 1},
       "dead_session"},
      {"a margin of more than a tenth is not thin",
       exact,
       {held(1s, "a"), free(2s)},
       {.acquisitions = 1, .releases = 1}},
      {"a shorter one is",
       exact,
       {held(20s, "a"), free(29500ms)},
       {.acquisitions = 1, .releases = 1, .thin_margins = 1},
       "thin_margin"},
      {"an expiry that its owner moves to an earlier time is a release at that time",
       exact,
       {held(1s, "a", 600s), held(4s, "a", 2s), ended(free(6s), Ending::expired)},
       {.acquisitions = 1, .releases = 1}},
      {"also where the store does not tell how it ended",
       at_least,
       {held(1s, "a", 600s), held(4s, "a", 2s), free(6s)},
       {.acquisitions = 1, .releases = 1}},
      {"and where it is sampled",
       sampled,
       {held(1s, "a", 600s), unchanged(held(4s, "a", 2s)), ended(free(6s), Ending::expired)},
       {.acquisitions = 1, .releases = 1}},
      {"the next client takes over nothing then",
       exact,
       {held(1s, "a", 600s), held(4s, "a", 2s), ended(free(6s), Ending::expired), held(6s, "b"),
        free(7s)},
       {.acquisitions = 2, .releases = 2}},
      {"a lock that is renewed after that expires again",
       exact,
       {held(1s, "a", 600s), held(4s, "a", 2s), held(5s, "a", 10s),
        ended(free(15s), Ending::expired)},
       {.acquisitions = 1, .renewals = 1, .expired_while_held = 1}},
      {"a look without a change only tells the time left more precisely",
       at_least,
       {held(1s, "a", 3s), unchanged(held(2s, "a", 1500ms)), ended(free(3500ms), Ending::expired)},
       {.acquisitions = 1, .expired_while_held = 1}},
      {"an expiry that the store moves is no renewal",
       exact,
       {held(1s, "a", 5s), by_store(held(5800ms, "a", 5s)), ended(free(8s), Ending::released)},
       {.acquisitions = 1, .releases = 1}},
      {"a margin is measured by the TTL that was set last",
       exact,
       {held(1s, "a", 24h), held(1001ms, "a"), free(2s)},
       {.acquisitions = 1, .releases = 1}},
  };
  const auto counts_of = [](const Counts& counts) {
    return std::tuple(counts.acquisitions, counts.releases, counts.renewals,
                      counts.expired_while_held, counts.undecided, counts.session_lost,
                      counts.taken_over, counts.owner_changed, counts.without_ttl,
                      counts.thin_margins);
  };
  for (const Story& story : stories) {
    watch(story.accuracy);
    for (const Sighting& sighting : story.seen) see(sighting);
    const Picture all = picture();
    ASSERT_EQ(all.families.size(), 1U) << story.what;
    const FamilyPicture& figures = all.families.front();
    EXPECT_EQ(counts_of(figures), counts_of(story.follows)) << story.what;
    EXPECT_EQ(finding(all, "stolen") != nullptr, story.found == "stolen") << story.what;
    EXPECT_TRUE(story.found.empty() || finding(all, story.found)) << story.what;
  }
}

TEST_F(ExactLedgerTest, ALongerTtlIsARenewalAndItsMarginCounts) {
  see(held(0s, "a", 3s));
  see(held(1s, "a", 3s));
  see(held(3s, "a", 3s));
  see(free(4s));
  const FamilyPicture seen = figures();
  EXPECT_EQ(seen.renewals, 2U);
  EXPECT_EQ(seen.acquisitions, 1U);
  EXPECT_NEAR(seen.margin_min.value(), 1, 0.001);
}

TEST_F(ExactLedgerTest, OwnersThatWereNotLookedAtAreNotOneOwner) {
  for (int i = 0; i < 200; ++i) {
    see(held(i * 100ms, i % 20 == 0 ? "owner" + std::to_string(i % 100) : ""));
    see(free(i * 100ms + 50ms));
  }
  const FamilyPicture seen = figures(20s);
  EXPECT_EQ(seen.acquisitions, 200U);
  EXPECT_NEAR(seen.largest_share, 0.2, 0.01);
  EXPECT_NEAR(static_cast<double>(seen.owners), 5, 0.1);
  EXPECT_NEAR(seen.owner_share, 0.05, 0.001);
  EXPECT_EQ(seen.hold_share, 1);
}

TEST_F(LedgerTest, LengthsOfTheFewThatWereSeenWholeAreWithheld) {
  watch(Accuracy::at_least);
  see(held(1s, "a", 100s));
  see(free(5s));
  EXPECT_NEAR(figures().hold.p50, 4, 0.1);
  see(late(free(6s), 40));
  const FamilyPicture seen = figures();
  EXPECT_NEAR(seen.hold_share, 1.0 / 21, 0.01);
  EXPECT_FALSE(seen.hold.any());
  EXPECT_FALSE(ledger_->usage(begin_ + 60s).hold.count() > 0);
}

TEST_F(LedgerTest, ChangesOfRenewedLocksAreNoHoldings) {
  watch(Accuracy::at_least);
  see(held(1s, "a", 5s));
  see(held(2s, "a", 5s));
  see(free(3s));
  see(changes(free(9s), 12));
  EXPECT_EQ(figures().renewals, 1U);
  EXPECT_EQ(figures().acquisitions, 2U) << "it may have been one, renewed ten times";
}

TEST_F(ExactLedgerTest, ALookAtWaitersLeavesTheRestAsItIs) {
  see(held(1s, "a"));
  Sighting only = waited_for(free(2s), 3);
  only.only_waiters = true;
  see(std::move(only));
  EXPECT_EQ(figures().waiting_now, 3U);
  EXPECT_EQ(figures().held_now, 1U);
  see(free(3s));
  EXPECT_EQ(figures().waiting_now, 3U) << "that look did not count them";
  EXPECT_NEAR(figures().hold.p50, 2, 0.1);
}

TEST_F(ExactLedgerTest, AWaiterThatIsGrantedTheLockHasWaited) {
  Sighting queue = held(1s, "a");
  queue.waiting = {{.owner = "b"}, {.owner = "c"}};
  see(std::move(queue));
  Sighting next = held(3s, "b");
  next.ended = Ending::released;
  next.waiting = {{.owner = "c"}};
  see(std::move(next));
  const FamilyPicture seen = figures(4s);
  EXPECT_EQ(seen.waits.count(), 1U);
  EXPECT_NEAR(seconds(seen.waits.mean()), 2, 0.001);
  EXPECT_EQ(seen.waiting_now, 1U);
  EXPECT_EQ(seen.most_waiting, 2U);
}

TEST_F(ExactLedgerTest, AClientThatUsesSeveralFamiliesIsOne) {
  for (int i = 0; i < 10; ++i) {
    for (const char* lock : {"order:1", "user:1", "mail:1"}) {
      see(held(i * 1s, "client" + std::to_string(i), 10s, lock));
      see(free(i * 1s + 500ms, lock));
    }
  }
  EXPECT_NEAR(static_cast<double>(ledger_->usage(begin_ + 10s).owners), 10, 1) << "an estimate";
}

TEST_F(ExactLedgerTest, OwnersAreNotKeptInClear) {
  see(held(1s, "a-secret-token"));
  const Picture all = picture(2s);
  ASSERT_FALSE(all.worst.empty());
  ASSERT_TRUE(all.worst.front().holder);
  EXPECT_THAT(*all.worst.front().holder, testing::Not(HasSubstr("secret")));
}

TEST_F(ExactLedgerTest, BeyondItsBoundLocksAreOnlyCounted) {
  for (int i = 0; i < 150; ++i) see(held(1s, "a", 10s, "lock:" + std::to_string(i)));
  const Picture all = picture(2s);
  EXPECT_NEAR(static_cast<double>(all.locks_unfollowed), 50, 2) << "an estimate";
  EXPECT_LE(all.worst.size(), 20U);
}

TEST_F(LedgerTest, HoldingsThatOnlyTheirChangesTellOfAreCounted) {
  watch(Accuracy::at_least);
  see(held(1s, "a"));
  see(free(2s));
  EXPECT_EQ(figures().sight, Accuracy::exact) << "nothing came together";
  see(changes(free(3s), 4));
  const FamilyPicture seen = figures();
  EXPECT_EQ(seen.acquisitions, 3U);
  EXPECT_EQ(seen.releases, 3U);
  EXPECT_EQ(seen.holds.count(), 1U) << "nobody saw how long the others lasted";
  EXPECT_EQ(seen.sight, Accuracy::at_least);
}

TEST_F(LedgerTest, TheFirstRowOfATableIsAnAcquisition) {
  ledger_->begin(begin_);
  Sighting row = shaped(held(3s, "a"), Shape::table_row);
  row.holders.front().since = begin_ + 2900ms;
  see(std::move(row));
  EXPECT_EQ(figures(5s).acquisitions, 1U);
}

TEST_F(LedgerTest, OwnersAreShownToThoseWhoAsk) {
  watch(Accuracy::exact, {.shows_owners = true});
  Sighting seen = held(1s, "0123456789abcdef0123");
  see(seen);
  EXPECT_EQ(picture(2s).worst.front().holder, "0123456789ab...")
      << "the whole token may be all that a release needs";
  seen.lock = "lock:b";
  seen.holders.front().about = "pid 17, worker, 10.0.0.7";
  see(seen);
  const Picture all = picture(2s);
  EXPECT_TRUE(std::ranges::any_of(all.worst, [](const LockPicture& lock) {
    return lock.holder == "pid 17, worker, 10.0.0.7";
  }));
}

TEST_F(ExactLedgerTest, KeysThatAreNoLocksAreCounted) {
  for (int look = 0; look < 5; ++look) {
    for (const char* key : {"lock:config", "lock:page"}) ledger_->no_lock(script_server, key);
  }
  EXPECT_EQ(picture(2s).sources.front().no_locks, 2U);
  EXPECT_EQ(picture(2s).sources.front().a_no_lock, "lock:config");
}

TEST_F(ExactLedgerTest, LocksThatAreFreeForAWhileMakeRoomForNewOnes) {
  for (int i = 0; i < 300; ++i) {
    const std::string lock = "lock:" + std::to_string(i);
    see(held(i * 1s, "a", 10s, lock));
    see(free(i * 1s + 50ms, lock));
  }
  const Picture all = picture(301s);
  EXPECT_EQ(all.locks_unfollowed, 0U);
  EXPECT_EQ(all.families.front().acquisitions, 300U);
}

TEST_F(LedgerTest, AFamilyHasWhatTheResultFileTellsOfIt) {
  watch(Accuracy::at_least);
  ledger_->facts({.store = "etcd", .endpoint = "127.0.0.1:2"});
  for (const char* lock : {"lock:a", "lock:b"}) see(for_ever(1s, "a", lock));
  see(free(3s));
  ledger_->missed(script_server, 7, "too many");
  ledger_->missed("127.0.0.1:2", 1000, "too many");
  const FamilyPicture seen = figures();
  EXPECT_EQ(seen.source, "script");
  EXPECT_EQ(seen.accuracy, "at_least");
  EXPECT_EQ(seen.no_ttl, 2U) << "the one that is held is a leak as well";
  EXPECT_NEAR(seen.hold.mean, 2, 0.03);
  EXPECT_EQ(seen.missed, 7U) << "of its own store only";
  EXPECT_FALSE(seen.wait || seen.waiting_now) << "the store does not tell who waits";
  see(waited_for(held(61s, "c"), 5));
  EXPECT_TRUE(figures(62s).wait);
  EXPECT_EQ(figures(62s).waiting_now, 5U);
}

TEST_F(LedgerTest, ALocksHistoryCountsFromTheBeginningOfTheWatch) {
  watch(Accuracy::exact);
  see(held(5s, "a"));
  see(free(7s));
  const LockPicture lock = picture().worst.at(0);
  EXPECT_EQ(lock.lock, "lock:a");
  EXPECT_EQ(lock.shape, "token");
  ASSERT_EQ(lock.history.size(), 2U);
  EXPECT_EQ(lock.history.front().what, "granted");
  EXPECT_EQ(lock.history.front().t, 5);
  EXPECT_EQ(lock.history.back().what, "released");
}

TEST_F(LedgerTest, FamiliesBeyondTheirBoundAreOne) {
  watch(Accuracy::exact, {.most_families = 2});
  for (const char* lock : {"a:1", "b:1", "c:1", "d:1"}) see(held(1s, "x", 10s, lock));
  const Picture all = picture(2s);
  EXPECT_EQ(all.families.size(), 3U);
  EXPECT_EQ(all.families.back().family, "other");
  EXPECT_EQ(all.families.back().acquisitions, 2U);
}

}  // namespace
}  // namespace lockbench::watch

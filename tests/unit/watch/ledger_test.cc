#include "watch/ledger.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <tuple>
#include <utility>

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string script_server = "127.0.0.1:1";

/// A source that plays a script at given times.
class LedgerTest : public testing::Test {
 protected:
  void look_by(Accuracy accuracy) {
    ledger_.facts(
        {.store = "redis", .endpoint = script_server, .way = "script", .accuracy = accuracy});
    ledger_.sees(script_server, begin_);
  }
  Sighting free(Duration at, std::string lock = "lock:a") const {
    return {.lock = std::move(lock), .at = begin_ + at, .shape = Shape::token, .changes = 1};
  }
  Sighting held(Duration at, std::string owner, Duration ttl = 10s,
                std::string lock = "lock:a") const {
    Sighting sighting = free(at, std::move(lock));
    sighting.holders = {{.owner = std::move(owner)}};
    if (ttl > 0s) sighting.ttl_left = ttl;
    return sighting;
  }
  void see(Sighting sighting) { ledger_.seen(script_server, std::move(sighting)); }

  Picture picture(Duration at = 60s) { return ledger_.read(begin_ + at); }
  FamilyPicture figures(Duration at = 60s) {
    const Picture all = picture(at);
    return all.families.empty() ? FamilyPicture() : all.families.front();
  }
  const Finding* finding(const Picture& all, std::string_view kind) {
    const auto found = std::find_if(all.findings.begin(), all.findings.end(),
                                    [&](const Finding& one) { return one.kind == kind; });
    return found == all.findings.end() ? nullptr : &*found;
  }

  const TimePoint begin_ = TimePoint(1000s);
  Ledger ledger_{{.most_locks = 100, .salt = "1"}};
};

class ExactLedgerTest : public LedgerTest {
 protected:
  ExactLedgerTest() { look_by(Accuracy::exact); }
};

TEST_F(ExactLedgerTest, ALockOnTwoServersIsALockOnEach) {
  const std::string other_server = "127.0.0.1:2";
  ledger_.facts(
      {.store = "redis", .endpoint = other_server, .way = "script", .accuracy = Accuracy::exact});
  see(held(1s, "a"));
  ledger_.seen(other_server, held(1s, "a"));
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

TEST_F(LedgerTest, AnEndAfterTheTtlIsAnExpiry) {
  look_by(Accuracy::at_least);
  see(held(1s, "a", 2s));
  see(free(3s + 50ms));
  const FamilyPicture seen = figures();
  EXPECT_EQ(seen.expired_while_held, 1U);
  EXPECT_EQ(seen.releases, 0U);
  EXPECT_NEAR(seconds(seen.holds.max), 2, 0.001) << "it was lost when its TTL ended";
  const Picture all = picture();
  const Finding* const found = finding(all, "expired");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->evidence, HasSubstr("the holder died or overran"));
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
  const auto ended = [](Sighting sighting, Ending how) {
    sighting.ended = how;
    return sighting;
  };
  const auto with_key_of_its_own = [](Sighting sighting) {
    sighting.shape = Shape::etcd_queue;
    return sighting;
  };
  const auto unchanged = [](Sighting sighting) {
    sighting.changes = 0;
    return sighting;
  };
  const auto by_store = [](Sighting sighting) {
    sighting.extended_by_store = true;
    return sighting;
  };
  const auto changes = [](Sighting sighting, std::uint64_t number) {
    sighting.changes = number;
    return sighting;
  };
  const auto late = [](Sighting sighting) {
    sighting.late = true;
    sighting.changes = 9;
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
       {with_key_of_its_own(held(1s, "a")), with_key_of_its_own(held(2s, "b"))},
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
    Ledger ledger({.salt = "1"});
    ledger.facts({.store = "redis", .endpoint = script_server, .accuracy = story.accuracy});
    for (const Sighting& sighting : story.seen) ledger.seen(script_server, sighting);
    const Picture all = ledger.read(begin_ + 60s);
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

TEST_F(ExactLedgerTest, ALockThatIsNotRenewedAnyMoreIsSaidBeforeItIsLost) {
  for (int second = 0; second < 5; ++second) see(held(second * 1s, "a", 5s));
  EXPECT_EQ(figures(5s).renewal_stopped_now, 0U);
  EXPECT_EQ(figures(7s).renewal_stopped_now, 1U);
  const Picture all = picture(7s);
  EXPECT_TRUE(finding(all, "renewal_stopped"));
}

TEST_F(ExactLedgerTest, ARenewalIsNotOverdueWhileTheWatchIsLateOrBlind) {
  for (int second = 0; second < 5; ++second) see(held(second * 1s, "a", 5s));
  ledger_.seen_until(script_server, begin_ + 4500ms);
  EXPECT_EQ(figures(7s).renewal_stopped_now, 0U) << "its renewal may wait for a look";
  EXPECT_NEAR(figures(7s).oldest_hold, 4.5, 0.001);
  ledger_.seen_until(script_server, TimePoint::max());
  EXPECT_EQ(figures(7s).renewal_stopped_now, 1U);

  Ledger other({.salt = "1"});
  other.facts({.store = "redis", .endpoint = script_server, .accuracy = Accuracy::exact});
  for (int second = 0; second < 5; ++second) {
    other.seen(script_server, held(second * 1s, "a", 5s));
  }
  const auto family = [&](Duration at) { return other.read(begin_ + at).families.front(); };
  EXPECT_FALSE(family(4s).blind);
  other.blind(script_server, begin_ + 4500ms, "connection refused");
  other.blind(script_server, begin_ + 6s, "WRONGPASS");
  const Picture blind = other.read(begin_ + 7s);
  EXPECT_EQ(blind.families.front().renewal_stopped_now, 0U);
  EXPECT_NEAR(blind.families.front().oldest_hold, 4.5, 0.001) << "it stands still";
  EXPECT_TRUE(blind.families.front().blind);
  EXPECT_EQ(blind.families.front().sight, Accuracy::at_least);
  EXPECT_NEAR(blind.sources.front().blind_for, 2.5, 0.001);
  ASSERT_TRUE(finding(blind, "blind"));
  EXPECT_THAT(finding(blind, "blind")->evidence, HasSubstr("2.5 s (WRONGPASS)"));
  other.sees(script_server, begin_ + 10s);
  EXPECT_TRUE(family(11s).blind) << "its state is not known before a TTL has passed";
  EXPECT_EQ(family(14s).renewal_stopped_now, 0U);
  EXPECT_FALSE(family(16s).blind);
  EXPECT_EQ(family(16s).sight, Accuracy::at_least) << "there was a gap";
  Sighting still = held(16s, "a", 5s);
  still.changes = 0;
  other.seen(script_server, still);
  EXPECT_NEAR(family(17s).oldest_hold, 1, 0.001) << "it may have been another holding before";
}

TEST_F(ExactLedgerTest, AfterAnOutageAGrantIsOneOfAKnownLockToo) {
  see(held(1s, "a"));
  see(free(2s));
  for (int outage = 1; outage <= 4; ++outage) {
    const Duration at = outage * 10s;
    ledger_.blind(script_server, begin_ + at, "connection refused");
    ledger_.sees(script_server, begin_ + at + 1s);
    see(held(at + 2s, "b"));
    see(free(at + 3s));
  }
  EXPECT_EQ(figures().acquisitions, 5U);
  EXPECT_EQ(figures().releases, 5U);
  EXPECT_EQ(figures().holds.count(), 5U);
}

TEST_F(ExactLedgerTest, NothingIsExactBeforeTheFirstLookAtAllLocks) {
  SourceFacts facts{.store = "redis", .endpoint = script_server, .accuracy = Accuracy::exact};
  facts.progress = "9 keys left";
  ledger_.facts(facts);
  see(held(1s, "a"));
  EXPECT_EQ(figures().sight, Accuracy::at_least);
  EXPECT_EQ(picture().sources.front().facts.accuracy, Accuracy::at_least);
  facts.progress.clear();
  ledger_.facts(facts);
  EXPECT_EQ(figures().sight, Accuracy::exact);
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
  look_by(Accuracy::at_least);
  see(held(1s, "a", 100s));
  see(free(5s));
  EXPECT_NEAR(figures().hold.p50, 4, 0.1);
  Sighting passed = free(6s);
  passed.changes = 40;
  passed.late = true;
  see(std::move(passed));
  const FamilyPicture seen = figures();
  EXPECT_NEAR(seen.hold_share, 1.0 / 21, 0.01);
  EXPECT_FALSE(seen.hold.any());
  EXPECT_FALSE(ledger_.usage(begin_ + 60s).hold.count() > 0);
}

TEST_F(LedgerTest, ChangesOfRenewedLocksAreNoHoldings) {
  look_by(Accuracy::at_least);
  see(held(1s, "a", 5s));
  see(held(2s, "a", 5s));
  see(free(3s));
  Sighting passed = free(9s);
  passed.changes = 12;
  see(std::move(passed));
  EXPECT_EQ(figures().renewals, 1U);
  EXPECT_EQ(figures().acquisitions, 2U) << "it may have been one, renewed ten times";
}

TEST_F(ExactLedgerTest, ALookAtWaitersLeavesTheRestAsItIs) {
  see(held(1s, "a"));
  Sighting waiters = free(2s);
  waiters.waiters = 3;
  waiters.only_waiters = true;
  see(std::move(waiters));
  EXPECT_EQ(figures().waiting_now, 3U);
  EXPECT_EQ(figures().held_now, 1U);
  see(free(3s));
  EXPECT_EQ(figures().waiting_now, 3U) << "that look did not count them";
  EXPECT_NEAR(figures().hold.p50, 2, 0.1);
}

TEST_F(ExactLedgerTest, ALockWithoutATtlMayLeak) {
  Sighting leaking = held(1s, "a", 0s);
  leaking.no_ttl = true;
  see(std::move(leaking));
  see(held(1s, "b", 10s, "lock:b"));
  EXPECT_EQ(figures(5s).without_ttl_now, 1U);
  const Picture all = picture(5s);
  ASSERT_TRUE(finding(all, "no_ttl"));
  EXPECT_EQ(finding(all, "no_ttl")->lock, "lock:a");
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

TEST_F(ExactLedgerTest, NothingIsConcludedAcrossATimeInWhichNobodySaw) {
  see(held(1s, "a", 2s));
  ledger_.blind(script_server, begin_ + 2s, "connection refused");
  EXPECT_TRUE(finding(picture(4s), "blind") != nullptr);
  ledger_.sees(script_server, begin_ + 10s);
  Sighting later = held(11s, "b");
  later.changes = 0;
  see(std::move(later));
  const FamilyPicture seen = figures(12s);
  EXPECT_EQ(seen.expired_while_held, 0U);
  EXPECT_EQ(seen.owner_changed, 0U);
  EXPECT_EQ(seen.releases, 0U);
  EXPECT_NEAR(picture(12s).sources.front().blind_seconds, 8, 0.001);
}

TEST_F(LedgerTest, WhatIsNotSeenAgainAfterAnOutageIsFree) {
  look_by(Accuracy::at_least);
  Sighting gone = held(1s, "a", 0s);
  gone.no_ttl = true;
  gone.waiters = 2;
  see(gone);
  see(held(1s, "b", 100s, "lock:b"));
  ledger_.blind(script_server, begin_ + 2s, "connection refused");
  ledger_.sees(script_server, begin_ + 5s);
  Sighting still = held(6s, "b", 95s, "lock:b");
  still.changes = 0;
  see(std::move(still));
  EXPECT_EQ(figures(20s).held_now, 2U) << "the source may still tell of it";
  const FamilyPicture seen = figures(70s);
  EXPECT_EQ(seen.held_now, 1U);
  EXPECT_EQ(seen.waiting_now, 0U);
  EXPECT_EQ(seen.without_ttl_now, 0U);
  EXPECT_EQ(seen.releases + seen.expired_while_held + seen.undecided, 0U) << "nobody saw its end";
  EXPECT_EQ(figures(71s).held_now, 1U);
  gone.at = begin_ + 80s;
  gone.changes = 0;
  see(std::move(gone));
  EXPECT_EQ(figures(80s).held_now, 2U);
  EXPECT_EQ(figures(80s).acquisitions, 2U) << "it was held all the time, and is no new one";
}

TEST_F(ExactLedgerTest, LocksThatWereFreedInAnOutageMakeRoomForNewOnes) {
  for (int i = 0; i < 100; ++i) see(held(1s, "a", 10s, "lock:" + std::to_string(i)));
  ledger_.blind(script_server, begin_ + 2s, "connection refused");
  ledger_.sees(script_server, begin_ + 3s);
  picture(70s);
  for (int i = 0; i < 50; ++i) see(held(90s, "a", 10s, "new:" + std::to_string(i)));
  EXPECT_EQ(picture(91s).locks_unfollowed, 0U);
}

TEST_F(ExactLedgerTest, AnOutageIsNoPauseOfTheApplication) {
  for (int second = 0; second < 60; ++second) {
    if (second == 20) ledger_.blind(script_server, begin_ + 20s, "connection refused");
    if (second == 40) ledger_.sees(script_server, begin_ + 40s);
    if (second >= 20 && second < 40) continue;
    see(held(second * 1s + 100ms, "a"));
    see(free(second * 1s + 200ms));
  }
  EXPECT_NEAR(ledger_.usage(begin_ + 60s).dispersion.value(), 0, 0.001);
  ledger_.blind(script_server, begin_ + 60s, "connection refused");
  EXPECT_NEAR(ledger_.usage(begin_ + 90s).dispersion.value(), 0, 0.001) << "nor is one that lasts";
}

TEST_F(ExactLedgerTest, AClientThatUsesSeveralFamiliesIsOne) {
  for (int i = 0; i < 10; ++i) {
    for (const char* lock : {"order:1", "user:1", "mail:1"}) {
      see(held(i * 1s, "client" + std::to_string(i), 10s, lock));
      see(free(i * 1s + 500ms, lock));
    }
  }
  EXPECT_NEAR(static_cast<double>(ledger_.usage(begin_ + 10s).owners), 10, 1) << "an estimate";
}

TEST_F(ExactLedgerTest, IsWatchedFromTheBeginningEvenIfNothingHappens) {
  ledger_.begin(begin_);
  EXPECT_EQ(picture(5s).watched, 5s);
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

TEST_F(ExactLedgerTest, OneClientThatTakesMostIsAHog) {
  for (int i = 0; i < 200; ++i) {
    see(held(i * 100ms, i % 10 == 0 ? "b" : "a"));
    see(free(i * 100ms + 50ms));
  }
  EXPECT_NEAR(figures(20s).largest_share, 0.9, 0.02);
}

TEST_F(LedgerTest, AFamilyInWhichNothingHappenedYetIsSeenAsItsSourceSees) {
  look_by(Accuracy::at_least);
  Sighting first = held(0s, "a");
  first.changes = 0;
  see(std::move(first));
  EXPECT_EQ(figures().sight, Accuracy::at_least);
}

TEST_F(LedgerTest, HoldingsThatOnlyTheirChangesTellOfAreCounted) {
  look_by(Accuracy::at_least);
  see(held(1s, "a"));
  see(free(2s));
  EXPECT_EQ(figures().sight, Accuracy::exact) << "nothing came together";
  Sighting passed = free(3s);
  passed.changes = 4;
  see(std::move(passed));
  const FamilyPicture seen = figures();
  EXPECT_EQ(seen.acquisitions, 3U);
  EXPECT_EQ(seen.releases, 3U);
  EXPECT_EQ(seen.holds.count(), 1U) << "nobody saw how long the others lasted";
  EXPECT_EQ(seen.sight, Accuracy::at_least);
}

TEST_F(LedgerTest, WhereChangesWereMissedFiguresAreLowerBounds) {
  for (const Accuracy accuracy : {Accuracy::at_least, Accuracy::exact}) {
    look_by(accuracy);
    see(held(1s, "a"));
    see(free(2s));
    ledger_.missed(script_server, 1, "too many");
    EXPECT_EQ(figures().sight, Accuracy::at_least);
  }
}

TEST_F(ExactLedgerTest, AQueueThatOnlyGrowsIsAConvoy) {
  for (int second = 0; second < 60; ++second) {
    Sighting queue = held(second * 1s, "a", 100s);
    queue.waiters = static_cast<std::uint64_t>(second);
    see(std::move(queue));
  }
  const Picture all = picture(60s);
  const Finding* const found = finding(all, "convoy");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->lock, "lock:a");
}

/// A queue at which clients arrive at 95 % of what the lock can grant: 10 sections a second,
/// arrivals and holds drawn from exponential distributions.
TEST_F(ExactLedgerTest, AStationaryQueueIsNoConvoy) {
  std::mt19937 random(7);  // NOLINT: the same each time
  const auto draw = [&](double rate) {
    const double uniform = (static_cast<double>(random()) + 0.5) / 4294967296.0;
    return Duration(static_cast<std::int64_t>(-std::log(uniform) / rate * 1e9));
  };
  Duration arrives = draw(9.5), ends = Duration::max(), read_at = 10s;
  std::uint64_t waiting = 0, most = 0;
  int client = 0;
  while (arrives < 1h) {
    const Duration now = std::min(arrives, ends);
    for (; read_at < now; read_at += 10s) {
      ASSERT_FALSE(finding(picture(read_at), "convoy")) << seconds(read_at);
    }
    const bool arrival = arrives <= ends;
    if (arrival) arrives = now + draw(9.5);
    if (arrival && ends != Duration::max()) {
      ++waiting;
    } else if (!arrival && waiting == 0) {
      see(free(now));
      ends = Duration::max();
      continue;
    } else {
      if (!arrival) --waiting;
      ++client;
      ends = now + draw(10);
    }
    Sighting seen = held(now, std::to_string(client), 100s);
    seen.ended = Ending::released;
    seen.waiters = waiting;
    most = std::max(most, waiting);
    see(std::move(seen));
  }
  EXPECT_GT(most, 50U) << "the queue is long at times";
}

TEST_F(ExactLedgerTest, AFindingIsOverAfterAWhileAndBeginsAnew) {
  ledger_.begin(begin_);
  const auto expire = [&](Duration at) {
    see(held(at, "a", 2s));
    see(free(at + 2s));
  };
  expire(10s);
  EXPECT_FALSE(finding(picture(13s), "expired")->over);
  EXPECT_FALSE(finding(picture(10min), "expired")->over);
  const Picture later = picture(11min);
  const Finding* over = finding(later, "expired");
  ASSERT_TRUE(over && over->over) << "it stays in the report";
  EXPECT_EQ(over->first_seconds, 13);
  EXPECT_EQ(over->last_seconds, 13);
  expire(20min);
  const Picture again = picture(21min);
  EXPECT_FALSE(finding(again, "expired")->over);
  EXPECT_EQ(finding(again, "expired")->times, 2U);
  EXPECT_EQ(finding(again, "expired")->first_seconds, 1260);
}

TEST_F(ExactLedgerTest, AnOutageIsOverAfterAWhile) {
  ledger_.blind(script_server, begin_ + 1s, "connection refused");
  ledger_.sees(script_server, begin_ + 1050ms);
  EXPECT_FALSE(finding(picture(2s), "blind")->over);
  EXPECT_TRUE(finding(picture(1h), "blind")->over);
}

TEST_F(ExactLedgerTest, AStateThatWasFoundStaysInTheReportWithItsNumberAndItsLock) {
  for (const char* lock : {"lock:a", "lock:b"}) {
    for (int second = 0; second < 5; ++second) see(held(second * 1s, "a", 5s, lock));
  }
  EXPECT_EQ(finding(picture(7s), "renewal_stopped")->times, 2U);
  for (const char* lock : {"lock:a", "lock:b"}) see(free(9s, lock));
  const Picture all = picture(20s);
  const Finding* const found = finding(all, "renewal_stopped");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->times, 2U);
  EXPECT_EQ(found->last_seconds, 7);
  EXPECT_THAT(found->lock.value_or(""), testing::StartsWith("lock:"));
}

TEST_F(ExactLedgerTest, FindingsNameALockHoweverManyOthersAreWorse) {
  for (int i = 0; i < 40; ++i) {
    const std::string lock = "worse:" + std::to_string(i);
    for (int round = 0; round < 3; ++round) {
      see(held(round * 10s, "a", 2s, lock));
      see(free(round * 10s + 2s, lock));
    }
  }
  see(held(1s, "a", 2s, "mild:1"));
  see(free(3s, "mild:1"));
  const Picture all = picture();
  for (const Finding& one : all.findings) EXPECT_TRUE(one.lock) << one.kind << one.family;
}

TEST_F(ExactLedgerTest, OwnersThatWereNotReadAreNoHog) {
  for (int i = 0; i < 1000; ++i) {
    Sighting seen = held(i * 10ms, i % 50 == 0 ? std::to_string(i % 20) : "");
    seen.waiters = 1;
    see(std::move(seen));
    see(free(i * 10ms + 5ms));
  }
  EXPECT_FALSE(finding(picture(20s), "hog"));
}

TEST_F(LedgerTest, TheFirstRowOfATableIsAnAcquisition) {
  Ledger ledger({.salt = "1"});
  ledger.begin(begin_);
  Sighting row = held(3s, "a");
  row.shape = Shape::table_row;
  row.holders.front().since = begin_ + 2900ms;
  ledger.seen(script_server, std::move(row));
  EXPECT_EQ(ledger.read(begin_ + 5s).families.front().acquisitions, 1U);
}

TEST_F(LedgerTest, AHoldingIsLongByWhatIsUsualOrByAnHour) {
  const auto long_at = [&](Ledger& ledger, Duration at) {
    return ledger.read(begin_ + at).families.front().held_long_now;
  };
  const auto watching = [&](LedgerOptions options = {}) {
    options.salt = "1";
    auto ledger = std::make_unique<Ledger>(options);
    ledger->facts({.store = "redis", .endpoint = script_server, .accuracy = Accuracy::exact});
    return ledger;
  };
  const auto first = watching();
  first->seen(script_server, held(1s, "a", 0s));
  EXPECT_EQ(long_at(*first, 59min), 0U);
  EXPECT_EQ(long_at(*first, 61min), 1U) << "nothing to compare with";

  const auto few = watching();
  few->seen(script_server, held(1s, "a", 0s));
  few->seen(script_server, free(2s));
  few->seen(script_server, held(3s, "a", 0s));
  EXPECT_EQ(long_at(*few, 62s), 0U);
  EXPECT_EQ(long_at(*few, 64s), 1U) << "20 times the longest, and a minute";

  const auto weekly = watching();
  weekly->seen(script_server, held(1s, "a", 24h));
  weekly->seen(script_server, free(2h));
  weekly->seen(script_server, held(168h, "a", 24h));
  EXPECT_EQ(long_at(*weekly, 171h), 0U) << "a job that takes two hours as a rule";

  const auto leader = watching();
  for (Duration at = 1s; at < 2h; at += 10s) leader->seen(script_server, held(at, "a", 15s));
  EXPECT_EQ(long_at(*leader, 2h), 0U) << "it is renewed in time";

  const auto declared = watching({.never_released = {"lock:*"}});
  declared->seen(script_server, held(1s, "a", 24h));
  EXPECT_EQ(long_at(*declared, 2h), 0U);
}

TEST_F(ExactLedgerTest, AFamilyThatIsNeverReleasedDoesNotExpireEachTime) {
  for (int i = 0; i < 20; ++i) {
    see(held(i * 60s, "a", 50s));
    see(free(i * 60s + 50s));
  }
  const Picture all = picture(20min);
  EXPECT_EQ(all.families.front().expired_while_held, 5U) << "then it is recognized";
  EXPECT_EQ(all.families.front().lapsed, 15U);
  EXPECT_TRUE(finding(all, "never_released"));
  // What overruns is taken by others.
  see(held(20min, "a", 50s));
  see(free(20min + 50s));
  see(held(20min + 51s, "b", 50s));
  see(free(20min + 101s));
  EXPECT_EQ(figures(22min).taken_over, 1U);
  EXPECT_EQ(figures(22min).expired_while_held, 6U);
}

TEST_F(LedgerTest, AFamilyThatIsDeclaredNeverReleasedDoesNotExpire) {
  Ledger ledger({.never_released = {"lock:*"}, .salt = "1"});
  ledger.facts({.store = "redis", .endpoint = script_server, .accuracy = Accuracy::exact});
  for (int i = 0; i < 3; ++i) {
    ledger.seen(script_server, held(i * 50s, std::to_string(i), 50s));
    ledger.seen(script_server, free((i + 1) * 50s));
  }
  const FamilyPicture seen = ledger.read(begin_ + 10min).families.front();
  EXPECT_EQ(seen.expired_while_held + seen.taken_over, 0U);
  EXPECT_EQ(seen.lapsed, 3U);
}

TEST_F(LedgerTest, OwnersAreShownToThoseWhoAsk) {
  Ledger ledger({.shows_owners = true, .salt = "1"});
  Sighting seen = held(1s, "0123456789abcdef0123");
  ledger.seen(script_server, seen);
  EXPECT_EQ(ledger.read(begin_ + 2s).worst.front().holder, "0123456789ab...")
      << "the whole token may be all that a release needs";
  seen.lock = "lock:b";
  seen.holders.front().about = "pid 17, worker, 10.0.0.7";
  ledger.seen(script_server, seen);
  const Picture all = ledger.read(begin_ + 2s);
  EXPECT_TRUE(std::ranges::any_of(all.worst, [](const LockPicture& lock) {
    return lock.holder == "pid 17, worker, 10.0.0.7";
  }));
}

TEST_F(ExactLedgerTest, KeysThatAreNoLocksAreCounted) {
  for (int look = 0; look < 5; ++look) {
    for (const char* key : {"lock:config", "lock:page"}) ledger_.no_lock(script_server, key);
  }
  EXPECT_EQ(picture(2s).sources.front().no_locks, 2U);
  EXPECT_EQ(picture(2s).sources.front().a_no_lock, "lock:config");
}

TEST_F(LedgerTest, ALockHeldForLongerThanAllowedIsSaid) {
  Ledger strict({.held_longer = 5s, .salt = "1"});
  strict.facts({.store = "redis", .endpoint = script_server, .accuracy = Accuracy::exact});
  strict.seen(script_server, held(1s, "a", 100s));
  EXPECT_FALSE(finding(strict.read(begin_ + 5s), "held_long") != nullptr);
  const Picture late = strict.read(begin_ + 7s);
  EXPECT_TRUE(finding(late, "held_long") != nullptr);
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
  look_by(Accuracy::at_least);
  ledger_.facts({.store = "etcd", .endpoint = "127.0.0.1:2"});
  for (const char* lock : {"lock:a", "lock:b"}) {
    Sighting leaking = held(1s, "a", 0s, lock);
    leaking.no_ttl = true;
    see(std::move(leaking));
  }
  see(free(3s));
  ledger_.missed(script_server, 7, "too many");
  ledger_.missed("127.0.0.1:2", 1000, "too many");
  const FamilyPicture seen = figures();
  EXPECT_EQ(seen.source, "script");
  EXPECT_EQ(seen.accuracy, "at_least");
  EXPECT_EQ(seen.no_ttl, 2U) << "the one that is held is a leak as well";
  EXPECT_NEAR(seen.hold.mean, 2, 0.03);
  EXPECT_EQ(seen.missed, 7U) << "of its own store only";
  EXPECT_FALSE(seen.wait || seen.waiting_now) << "the store does not tell who waits";
  Sighting queue = held(61s, "c");
  queue.waiters = 5;
  see(std::move(queue));
  EXPECT_TRUE(figures(62s).wait);
  EXPECT_EQ(figures(62s).waiting_now, 5U);
}

TEST_F(LedgerTest, ALocksHistoryCountsFromTheBeginningOfTheWatch) {
  ledger_.begin(begin_);
  look_by(Accuracy::exact);
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
  Ledger small({.most_families = 2, .salt = "1"});
  small.facts({.store = "redis", .endpoint = script_server, .accuracy = Accuracy::exact});
  for (const char* lock : {"a:1", "b:1", "c:1", "d:1"}) {
    small.seen(script_server, held(1s, "x", 10s, lock));
  }
  const Picture all = small.read(begin_ + 2s);
  EXPECT_EQ(all.families.size(), 3U);
  EXPECT_EQ(all.families.back().family, "other");
  EXPECT_EQ(all.families.back().acquisitions, 2U);
}

}  // namespace
}  // namespace lockbench::watch

#include "tests/unit/watch/ledger_fixture.h"

namespace lockbench::watch {
namespace {

using testing::HasSubstr;

TEST_F(ExactLedgerTest, NothingIsExactBeforeTheFirstLookAtAllLocks) {
  SourceFacts facts{.store = "redis", .endpoint = script_server, .accuracy = Accuracy::exact};
  facts.progress = "9 keys left";
  ledger_->facts(facts);
  see(held(1s, "a"));
  EXPECT_EQ(figures().sight, Accuracy::at_least);
  EXPECT_EQ(picture().sources.front().facts.accuracy, Accuracy::at_least);
  facts.progress.clear();
  ledger_->facts(facts);
  EXPECT_EQ(figures().sight, Accuracy::exact);
}

TEST_F(LedgerTest, AFamilyInWhichNothingHappenedYetIsSeenAsItsSourceSees) {
  watch(Accuracy::at_least);
  see(unchanged(held(0s, "a")));
  EXPECT_EQ(figures().sight, Accuracy::at_least);
}

TEST_F(LedgerTest, WhereChangesWereMissedFiguresAreLowerBounds) {
  for (const Accuracy accuracy : {Accuracy::at_least, Accuracy::exact}) {
    watch(accuracy);
    see(held(1s, "a"));
    see(free(2s));
    ledger_->missed(script_server, 1, "too many");
    EXPECT_EQ(figures().sight, Accuracy::at_least);
  }
}

TEST_F(ExactLedgerTest, HoldingsThatWereMissedCountInTheShareThatWasSeen) {
  see(held(1s, "a"));
  Sighting after = free(2s);
  after.missed_holdings = 3;
  see(after);
  EXPECT_NEAR(figures().hold_share, 0.25, 0.001);
  EXPECT_NEAR(figures().owner_share, 0.25, 0.001);
}

TEST_F(ExactLedgerTest, ARenewalIsNotOverdueWhileTheWatchIsLateOrBlind) {
  for (int second = 0; second < 5; ++second) see(held(second * 1s, "a", 5s));
  ledger_->seen_until(script_server, begin_ + 4500ms);
  EXPECT_EQ(figures(7s).renewal_stopped_now, 0U) << "its renewal may wait for a look";
  EXPECT_NEAR(figures(7s).oldest_hold, 4.5, 0.001);
  ledger_->seen_until(script_server, TimePoint::max());
  EXPECT_EQ(figures(7s).renewal_stopped_now, 1U);
}

TEST_F(ExactLedgerTest, ABlindWatchLetsItsFiguresStandStill) {
  for (int second = 0; second < 5; ++second) see(held(second * 1s, "a", 5s));
  EXPECT_FALSE(figures(4s).blind);
  ledger_->blind(script_server, begin_ + 4500ms, "connection refused");
  ledger_->blind(script_server, begin_ + 6s, "WRONGPASS");
  const Picture blind = picture(7s);
  EXPECT_EQ(blind.families.front().renewal_stopped_now, 0U);
  EXPECT_NEAR(blind.families.front().oldest_hold, 4.5, 0.001) << "it stands still";
  EXPECT_TRUE(blind.families.front().blind);
  EXPECT_EQ(blind.families.front().sight, Accuracy::at_least);
  EXPECT_NEAR(blind.sources.front().blind_for, 2.5, 0.001);
  ASSERT_TRUE(finding(blind, "blind"));
  EXPECT_THAT(finding(blind, "blind")->evidence, HasSubstr("2.5 s (WRONGPASS)"));
  ledger_->sees(script_server, begin_ + 10s);
  EXPECT_TRUE(figures(11s).blind) << "its state is not known before a TTL has passed";
  EXPECT_EQ(figures(14s).renewal_stopped_now, 0U);
  EXPECT_FALSE(figures(16s).blind);
  EXPECT_EQ(figures(16s).sight, Accuracy::at_least) << "there was a gap";
  see(unchanged(held(16s, "a", 5s)));
  EXPECT_NEAR(figures(17s).oldest_hold, 1, 0.001) << "it may have been another holding before";
}

TEST_F(ExactLedgerTest, AfterAnOutageAGrantIsOneOfAKnownLockToo) {
  see(held(1s, "a"));
  see(free(2s));
  for (int outage = 1; outage <= 4; ++outage) {
    const Duration at = outage * 10s;
    ledger_->blind(script_server, begin_ + at, "connection refused");
    ledger_->sees(script_server, begin_ + at + 1s);
    see(held(at + 2s, "b"));
    see(free(at + 3s));
  }
  EXPECT_EQ(figures().acquisitions, 5U);
  EXPECT_EQ(figures().releases, 5U);
  EXPECT_EQ(figures().holds.count(), 5U);
}

TEST_F(ExactLedgerTest, NothingIsConcludedAcrossATimeInWhichNobodySaw) {
  see(held(1s, "a", 2s));
  ledger_->blind(script_server, begin_ + 2s, "connection refused");
  EXPECT_TRUE(finding(picture(4s), "blind") != nullptr);
  ledger_->sees(script_server, begin_ + 10s);
  see(unchanged(held(11s, "b")));
  const FamilyPicture seen = figures(12s);
  EXPECT_EQ(seen.expired_while_held, 0U);
  EXPECT_EQ(seen.owner_changed, 0U);
  EXPECT_EQ(seen.releases, 0U);
  EXPECT_NEAR(picture(12s).sources.front().blind_seconds, 8, 0.001);
}

TEST_F(LedgerTest, WhatIsNotSeenAgainAfterAnOutageIsFree) {
  watch(Accuracy::at_least);
  see(waited_for(for_ever(1s, "a"), 2));
  see(held(1s, "b", 100s, "lock:b"));
  ledger_->blind(script_server, begin_ + 2s, "connection refused");
  ledger_->sees(script_server, begin_ + 5s);
  see(unchanged(held(6s, "b", 95s, "lock:b")));
  EXPECT_EQ(figures(20s).held_now, 2U) << "the source may still tell of it";
  const FamilyPicture seen = figures(70s);
  EXPECT_EQ(seen.held_now, 1U);
  EXPECT_EQ(seen.waiting_now, 0U);
  EXPECT_EQ(seen.without_ttl_now, 0U);
  EXPECT_EQ(seen.releases + seen.expired_while_held + seen.undecided, 0U) << "nobody saw its end";
  EXPECT_EQ(figures(71s).held_now, 1U);
  see(unchanged(waited_for(for_ever(80s, "a"), 2)));
  EXPECT_EQ(figures(80s).held_now, 2U);
  EXPECT_EQ(figures(80s).acquisitions, 2U) << "it was held all the time, and is no new one";
}

TEST_F(ExactLedgerTest, LocksThatWereFreedInAnOutageMakeRoomForNewOnes) {
  for (int i = 0; i < 100; ++i) see(held(1s, "a", 10s, "lock:" + std::to_string(i)));
  ledger_->blind(script_server, begin_ + 2s, "connection refused");
  ledger_->sees(script_server, begin_ + 3s);
  picture(70s);
  for (int i = 0; i < 50; ++i) see(held(90s, "a", 10s, "new:" + std::to_string(i)));
  EXPECT_EQ(picture(91s).locks_unfollowed, 0U);
}

TEST_F(ExactLedgerTest, AnOutageIsNoPauseOfTheApplication) {
  for (int second = 0; second < 60; ++second) {
    if (second == 20) ledger_->blind(script_server, begin_ + 20s, "connection refused");
    if (second == 40) ledger_->sees(script_server, begin_ + 40s);
    if (second >= 20 && second < 40) continue;
    see(held(second * 1s + 100ms, "a"));
    see(free(second * 1s + 200ms));
  }
  EXPECT_NEAR(ledger_->usage(begin_ + 60s).dispersion.value(), 0, 0.001);
  ledger_->blind(script_server, begin_ + 60s, "connection refused");
  EXPECT_NEAR(ledger_->usage(begin_ + 90s).dispersion.value(), 0, 0.001) << "nor is one that lasts";
}

}  // namespace
}  // namespace lockbench::watch

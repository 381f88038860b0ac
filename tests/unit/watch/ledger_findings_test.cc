#include <algorithm>
#include <cmath>
#include <random>

#include "tests/unit/watch/ledger_fixture.h"

namespace lockbench::watch {
namespace {

using testing::HasSubstr;

TEST_F(LedgerTest, AnEndAfterTheTtlIsAnExpiry) {
  watch(Accuracy::at_least);
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

TEST_F(ExactLedgerTest, ALockThatIsNotRenewedAnyMoreIsSaidBeforeItIsLost) {
  for (int second = 0; second < 5; ++second) see(held(second * 1s, "a", 5s));
  EXPECT_EQ(figures(5s).renewal_stopped_now, 0U);
  EXPECT_EQ(figures(7s).renewal_stopped_now, 1U);
  const Picture all = picture(7s);
  EXPECT_TRUE(finding(all, "renewal_stopped"));
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
    most = std::max(most, waiting);
    see(waited_for(ended(held(now, std::to_string(client), 100s), Ending::released), waiting));
  }
  EXPECT_GT(most, 50U) << "the queue is long at times";
}

TEST_F(LedgerTest, AHoldingIsLongByWhatIsUsualOrByAnHour) {
  const auto long_at = [&](Duration at) { return figures(at).held_long_now; };
  watch(Accuracy::exact);
  see(held(1s, "a", 0s));
  EXPECT_EQ(long_at(59min), 0U);
  EXPECT_EQ(long_at(61min), 1U) << "nothing to compare with";

  watch(Accuracy::exact);
  see(held(1s, "a", 0s));
  see(free(2s));
  see(held(3s, "a", 0s));
  EXPECT_EQ(long_at(62s), 0U);
  EXPECT_EQ(long_at(64s), 1U) << "20 times the longest, and a minute";

  watch(Accuracy::exact);
  see(held(1s, "a", 24h));
  see(free(2h));
  see(held(168h, "a", 24h));
  EXPECT_EQ(long_at(171h), 0U) << "a job that takes two hours as a rule";

  watch(Accuracy::exact);
  for (Duration at = 1s; at < 2h; at += 10s) see(held(at, "a", 15s));
  EXPECT_EQ(long_at(2h), 0U) << "a leader is renewed in time";

  watch(Accuracy::exact, {.never_released = {"lock:*"}});
  see(held(1s, "a", 24h));
  EXPECT_EQ(long_at(2h), 0U);

  watch(Accuracy::exact, {.held_longer = 5s});
  see(held(1s, "a", 100s));
  EXPECT_FALSE(finding(picture(5s), "held_long"));
  EXPECT_TRUE(finding(picture(7s), "held_long"));
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
  watch(Accuracy::exact, {.never_released = {"lock:*"}});
  for (int i = 0; i < 3; ++i) {
    see(held(i * 50s, std::to_string(i), 50s));
    see(free((i + 1) * 50s));
  }
  const FamilyPicture seen = figures(10min);
  EXPECT_EQ(seen.expired_while_held + seen.taken_over, 0U);
  EXPECT_EQ(seen.lapsed, 3U);
}

TEST_F(ExactLedgerTest, AFindingIsOverAfterAWhileAndBeginsAnew) {
  ledger_->begin(begin_);
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

}  // namespace
}  // namespace lockbench::watch

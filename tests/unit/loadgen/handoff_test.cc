#include "loadgen/record/handoff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lockbench::loadgen {
namespace {

using std::chrono::nanoseconds;

TimePoint after_ns(int nanosecond) {
  return TimePoint(std::chrono::hours(1000) + nanoseconds(nanosecond));
}

/// One holder, and one client that waits.
class HandoffTest : public testing::Test {
 protected:
  /// A grant without a wait.
  GrantNote take(int at = 0) { return grant(at, tracker_.begin_wait(0)); }
  void release(int at, bool success = true) {
    start(at);
    finish(at, success);
  }
  bool start(int at) { return tracker_.release_started(0, Mode::exclusive, after_ns(at)); }
  void finish(int at, bool success = true) {
    tracker_.release_finished(0, after_ns(at), success, completed_);
  }
  GrantNote grant(int at, const WaitTicket& wait) {
    return tracker_.granted(0, wait, after_ns(at), completed_);
  }
  /// A grant to the waiting client.
  GrantNote grant(int at) { return grant(at, waiting_); }
  /// Handoffs completed since the last call, in nanoseconds; negative if not direct.
  std::vector<int> handoffs() {
    std::vector<int> found;
    for (const Handoff& one : completed_) {
      const int taken = static_cast<int>(one.taken.count());
      for (std::uint64_t i = 0; i < one.releases; ++i) found.push_back(one.direct ? taken : -taken);
    }
    completed_.clear();
    std::sort(found.begin(), found.end());
    return found;
  }

  HandoffTracker tracker_{2};
  std::vector<Handoff> completed_;
  const GrantNote held_ = take();
  const WaitTicket waiting_ = tracker_.begin_wait(0);
};
using Ns = std::vector<int>;

TEST_F(HandoffTest, ALockThatAClientHoldsIsNotStuck) {
  tracker_.found_taken(0, waiting_);
  EXPECT_EQ(tracker_.stuck(), 0U) << "it was held when the wait began";
  release(100);
  const WaitTicket second = tracker_.begin_wait(0);
  grant(110);
  start(120);
  tracker_.found_taken(0, second);
  EXPECT_EQ(tracker_.stuck(), 0U) << "it was granted meanwhile";
}

TEST_F(HandoffTest, ALockThatNobodyHoldsIsStuckUntilItIsGranted) {
  const WaitTicket other = tracker_.begin_wait(1);
  tracker_.found_taken(1, other);
  tracker_.found_taken(1, other);
  EXPECT_EQ(tracker_.stuck(), 1U);
  tracker_.granted(1, tracker_.begin_wait(1), after_ns(10), completed_);
  EXPECT_EQ(tracker_.stuck(), 0U);
}

TEST_F(HandoffTest, IsToldByTheLaterOfGrantAndConfirmation) {
  const WaitTicket second = tracker_.begin_wait(0);
  release(100);
  EXPECT_EQ(handoffs(), Ns{});
  grant(130);
  EXPECT_EQ(handoffs(), Ns{30});
  start(200);
  grant(220, second);
  EXPECT_EQ(handoffs(), Ns{});
  finish(200);
  EXPECT_EQ(handoffs(), Ns{20});
}

TEST_F(HandoffTest, WithoutAWaiterThereIsNone) {
  std::vector<Duration> unserved;
  tracker_.gave_up(0, waiting_, after_ns(60), unserved);
  EXPECT_FALSE(start(100));
  finish(100);
  take(130);
  EXPECT_EQ(handoffs(), Ns{});
  EXPECT_TRUE(unserved.empty());
}

TEST_F(HandoffTest, WhoCameLaterOvertakesAndEveryReleaseWaitsForItsWaiter) {
  release(100);
  EXPECT_TRUE(take(101).overtook);
  release(200);
  EXPECT_TRUE(take(201).overtook);
  release(300);
  EXPECT_EQ(handoffs(), Ns{});
  EXPECT_FALSE(grant(350).overtook);
  EXPECT_EQ(handoffs(), (Ns{-250, -150, 50}))
      << "only the last release went to the waiter directly";
}

TEST_F(HandoffTest, OneThatOvertakesAnUnconfirmedReleaseIsSeen) {
  start(100);
  EXPECT_TRUE(take(101).overtook);
  finish(100);
  release(200);
  grant(230);
  EXPECT_EQ(handoffs(), (Ns{-130, 30}));
}

TEST_F(HandoffTest, AFailedReleaseIsNoHandoffBeforeAGrantOrAfterIt) {
  const WaitTicket second = tracker_.begin_wait(0);
  release(100, false);
  grant(130);
  start(200);
  grant(220, second);
  finish(200, false);
  EXPECT_EQ(handoffs(), Ns{});
}

TEST_F(HandoffTest, AGrantFromBeforeTheReleaseIsNotItsDoing) {
  const WaitTicket second = tracker_.begin_wait(0);
  release(100);
  grant(90);
  EXPECT_EQ(handoffs(), Ns{});
  grant(130, second);
  EXPECT_EQ(handoffs(), Ns{30});
}

TEST_F(HandoffTest, AReleaseForWhichOnlyAnEarlierGrantWaitedIsForgotten) {
  release(100);
  grant(90);
  EXPECT_FALSE(take(130).overtook) << "nobody waited";
  EXPECT_TRUE(tracker_.unserved(after_ns(1000)).empty());
  EXPECT_EQ(handoffs(), Ns{});
}

TEST_F(HandoffTest, ALateConfirmationDoesNotMeetTheNextRelease) {
  const WaitTicket second = tracker_.begin_wait(0);
  start(100);
  grant(120);
  start(200);
  grant(230, second);
  finish(100);
  EXPECT_EQ(handoffs(), Ns{20});
  finish(200);
  EXPECT_EQ(handoffs(), Ns{30});
}

TEST_F(HandoffTest, AReleaseThatNobodyTookUpWasMissedAsLongAsItsLastWaiterWaited) {
  const WaitTicket second = tracker_.begin_wait(0);
  release(100);
  std::vector<Duration> unserved;
  tracker_.gave_up(0, waiting_, after_ns(300), unserved);
  EXPECT_TRUE(unserved.empty());
  tracker_.gave_up(0, second, after_ns(400), unserved);
  EXPECT_EQ(unserved, std::vector<Duration>{nanoseconds(300)});
  take(500);
  EXPECT_EQ(handoffs(), Ns{});
}

TEST_F(HandoffTest, AtTheEndTheReleasesThatNobodyTookUpAreKnown) {
  release(100);
  take(101);
  release(200);
  EXPECT_EQ(tracker_.unserved(after_ns(1000)),
            (std::vector<Duration>{nanoseconds(900), nanoseconds(800)}));
}

TEST_F(HandoffTest, ASharedReleaseHandsNothingOn) {
  EXPECT_FALSE(tracker_.release_started(0, Mode::shared, after_ns(100)));
  grant(130);
  EXPECT_EQ(handoffs(), Ns{});
}

TEST_F(HandoffTest, AGrantIsContendedIfAnotherClientHeldOrWantedTheLock) {
  EXPECT_FALSE(held_.contended) << "nobody else was there";
  HandoffTracker tracker(1);
  const auto granted = [&](const WaitTicket& wait) {
    return tracker.granted(0, wait, after_ns(2), completed_).contended;
  };
  EXPECT_FALSE(granted(tracker.begin_wait(0)));
  const WaitTicket second = tracker.begin_wait(0);
  EXPECT_TRUE(second.contended) << "somebody holds it";
  tracker.release_started(0, Mode::exclusive, after_ns(3));
  const WaitTicket third = tracker.begin_wait(0);
  EXPECT_TRUE(third.contended) << "somebody waits";
  EXPECT_TRUE(granted({.number = second.number})) << "somebody still waits";
}

TEST(Handoff, ClientsThatShareALockDoNotContendForIt) {
  HandoffTracker tracker(1);
  std::vector<Handoff> completed;
  std::vector<Duration> unserved;
  const auto granted = [&](const WaitTicket& wait) {
    return tracker.granted(0, wait, after_ns(1), completed).contended;
  };
  const WaitTicket first = tracker.begin_wait(0, Mode::shared);
  const WaitTicket second = tracker.begin_wait(0, Mode::shared);
  EXPECT_FALSE(granted(first)) << "only another reader waits";
  EXPECT_FALSE(granted(second)) << "only another reader has it";
  const WaitTicket writer = tracker.begin_wait(0, Mode::exclusive);
  EXPECT_TRUE(writer.contended) << "readers have it";
  EXPECT_TRUE(granted(tracker.begin_wait(0, Mode::shared))) << "a writer waits";
  tracker.gave_up(0, writer, after_ns(2), unserved);
  EXPECT_FALSE(granted(tracker.begin_wait(0, Mode::shared))) << "no writer is left";
  for (int reader = 0; reader < 4; ++reader) {
    tracker.release_started(0, Mode::shared, after_ns(3));
  }
  EXPECT_FALSE(granted(tracker.begin_wait(0, Mode::exclusive))) << "nobody is left";
  EXPECT_TRUE(tracker.begin_wait(0, Mode::shared).contended) << "a writer has it";
}

TEST_F(HandoffTest, ALockThatStarvesItsWaiterFillsNoMemoryAndLosesNoRelease) {
  constexpr int kReleases = 100'000;
  for (int i = 0; i < kReleases; ++i) {
    release(100 + 2 * i);
    take(101 + 2 * i);
  }
  EXPECT_EQ(tracker_.unserved(after_ns(1'000'000)).size(), kReleases);
  release(100 + 2 * kReleases);
  grant(1'000'000);
  EXPECT_LT(completed_.size(), 20'000U);
  EXPECT_EQ(handoffs().size(), kReleases + 1U);
}

}  // namespace
}  // namespace lockbench::loadgen

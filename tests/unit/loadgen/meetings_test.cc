#include <gmock/gmock.h>

#include <atomic>
#include <mutex>

#include "loadgen/run/demand.h"
#include "loadgen/run/runner.h"
#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

constexpr TimePoint kNow{1h};

TEST(Meetings, LocksTakeTurnsAndOneMeetsAtATime) {
  Meetings meetings(2, 10s);
  EXPECT_FALSE(meetings.begin(1, kNow)) << "it is the other one's turn";
  EXPECT_TRUE(meetings.begin(0, kNow));
  EXPECT_FALSE(meetings.begin(1, kNow + 20s)) << "one is under way";
  meetings.end();
  EXPECT_FALSE(meetings.begin(1, kNow + 9s)) << "it is too early";
  EXPECT_FALSE(meetings.begin(0, kNow + 20s));
  EXPECT_TRUE(meetings.begin(1, kNow + 20s));
}

/// Records facts that the result file lacks.
class WatchedRunTest : public LiveRunTest, public RunWatcher {
 protected:
  WatchedRunTest() { plan_.watcher = this; }
  void run_begins(const RunShared&) override {}
  void run_ends(const RunShared& run, const results::Run*) override {
    counts_ = run.recorder.totals();
    for (const Phase phase : kPhases) {
      abandoned_ += run.recorder.histograms(phase)[Timing::abandoned].snapshot().count();
    }
    stuck_ = run.handoff.stuck();
    uncontended_ = run.recorder.histograms(Phase::measured)[Timing::uncontended].snapshot().count();
  }
  std::uint64_t count(FailureReason reason) const { return counts_[count_of(reason)]; }

  Counts counts_;
  std::uint64_t abandoned_ = 0, stuck_ = 0, uncontended_ = 0;
};

/// Four clients, two for each of two locks; one of them is held for a while every 50 ms.
class CanaryTest : public WatchedRunTest {
 protected:
  CanaryTest() {
    plan_.workload.key_per_client = true;
    plan_.workload.meet_every = 50ms;
    open_loop(100);
    plan_.workload.duration = 600ms;
    plan_.workload.acquire_timeout = 5s;
    hold(20ms);
  }
};

TEST_F(CanaryTest, TwoClientsWantTheSameLockNowAndThen) {
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_GE(run.audit.contended_grants, 2U);
  EXPECT_LT(run.audit.contended_grants, run.sections / 2);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.outcomes.timed_out, 0U);
  EXPECT_GE(run.hold.max, 0.02);
  EXPECT_LT(run.hold.p50, 0.01) << "most sections hold nothing";
  EXPECT_GT(uncontended_, 0U);
  EXPECT_LE(uncontended_ + run.audit.contended_grants, counts_[Count::sections]);
}

TEST_F(CanaryTest, ALockThatLetsBothInIsCaught) {
  EXPECT_GT(run_one(leaky_lock).audit.overlaps, 0U);
}

TEST_F(CanaryTest, TheRivalWaitsAsLongAsItsPartnerHolds) {
  plan_.workload.acquire_timeout = 1ms;
  hold(100ms);
  plan_.workload.meet_every = 200ms;
  std::atomic<bool> too_short{false};
  std::mutex mutex;
  std::set<std::string> keys;
  run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
    const bool rival = context.client >= 2;
    if (rival && request.deadline < context.env.now() + 5ms) too_short = true;
    const std::scoped_lock lock(mutex);
    if (rival) keys.insert(std::string(request.key));
    return grant(request);
  }});
  EXPECT_FALSE(too_short);
  EXPECT_THAT(keys, testing::SizeIs(2)) << "each lock has its turn";
}

/// The reason that clients record.
class ReasonTest : public WatchedRunTest {
 protected:
  ReasonTest() {
    plan_.workload.clients = 1;
    open_loop(100);
    plan_.workload.acquire_timeout = 1ms;
    plan_.workload.longest_lag = 20ms;
    plan_.workload.duration = 300ms;
  }
};

TEST_F(ReasonTest, FollowsFromTheOutcomeAndTheMessage) {
  std::atomic<int> asked{0};
  run_one({.acquire = [&](const Context&, const AcquireRequest&) {
    switch (asked++ % 4) {
      case 0:
        return outcome(AcquireOutcome::timed_out);
      case 1:
        return outcome(AcquireOutcome::refused);
      case 2:
        return outcome(AcquireOutcome::failed, "h:1: OOM command not allowed");
      default:
        return outcome(AcquireOutcome::unknown, "h:1: no answer within 1s");
    }
  }});
  for (const FailureReason reason :
       {FailureReason::taken, FailureReason::refused, FailureReason::oom, FailureReason::timeout}) {
    EXPECT_GT(count(reason), 0U) << info_of(reason).name;
  }
  EXPECT_EQ(count(FailureReason::slow), 0U);
}

TEST_F(ReasonTest, OfASectionThatWasNeverBegunIsThatOfTheOneBefore) {
  run_one({.acquire = [](const Context& context, const AcquireRequest&) {
    context.env.wait(nullptr, context.env.now() + 100ms, {});
    return outcome(AcquireOutcome::unknown, "h:1: no answer within 100ms");
  }});
  EXPECT_GT(count(FailureReason::timeout), 10U) << "ten are due while one waits";
  EXPECT_EQ(count(FailureReason::slow), 0U);
}

TEST_F(ReasonTest, IsSlownessIfTheOneBeforeWasGranted) {
  run_one({.acquire = [](const Context& context, const AcquireRequest& request) {
    context.env.wait(nullptr, context.env.now() + 100ms, {});
    return grant(request);
  }});
  EXPECT_GT(count(FailureReason::slow), 5U);
  EXPECT_LE(count(FailureReason::slow), abandoned_);
}

TEST_F(ReasonTest, ALockThatNobodyIsGrantedIsStuck) {
  plan_.workload.clients = 2;
  plan_.workload.key_per_client = true;
  run_one({.acquire = [](const Context& context, const AcquireRequest& request) {
    return context.client == 0 ? grant(request) : wait_in_vain(context, request);
  }});
  EXPECT_EQ(stuck_, 1U);
}

}  // namespace
}  // namespace lockbench::loadgen

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Verdict;

/// Locks that exclude. After each grant the client pauses, so that clients meet between two locks.
struct KeyedLocks {
  Behaviour behaviour() {
    return {.acquire = [this](const Context& context,
                              const AcquireRequest& request) { return acquire(context, request); },
            .release =
                [this](const Lease& lease) {
                  taken[lease.key] = false;
                  ++releases;
                  return ReleaseResult{ReleaseOutcome::released, {}};
                }};
  }

  AcquireResult acquire(const Context& context, const AcquireRequest& request) {
    bool& is_taken = taken[std::string(request.key)];
    if (is_taken && request.deadline <= context.env.now()) return outcome(AcquireOutcome::refused);
    waits += is_taken ? 1 : 0;
    while (is_taken) {
      if (context.env.now() >= request.deadline) return outcome(AcquireOutcome::timed_out);
      context.env.wait(nullptr, context.env.now() + 100us, {});
    }
    is_taken = true;
    ++grants;
    context.env.wait(nullptr, context.env.now() + 200us, {});
    return grant(request);
  }

  std::map<std::string, bool> taken;
  int grants = 0, releases = 0, waits = 0;
};

class TransactionRunTest : public TraceRunTest {
 protected:
  TransactionRunTest() {
    Workload& workload = plan_.workload;
    workload.keys = 3;
    workload.locks_per_section = 2;
    workload.deadlock_timeout = 5ms;
    end_after(kSections);
  }

  /// Expects that every section got both its locks, exclusively, and released them.
  void expect_complete(const results::Run& run) const {
    EXPECT_EQ(run.sections, kSections);
    EXPECT_EQ(run.audit.overlaps, 0U);
    EXPECT_EQ(run.audit.lost_updates, 0U);
    EXPECT_GE(run.audit.increments, 2 * kSections);
    EXPECT_EQ(locks_.grants, locks_.releases);
    ASSERT_TRUE(run.transactions);
    EXPECT_EQ(run.transactions->acquire.count, kSections);
    EXPECT_EQ(run.transactions->acquire_service.count, kSections);
    EXPECT_GE(run.transactions->locks_per_second, 2 * run.sections_per_second * 0.999);
    EXPECT_GE(run.transactions->acquire.p50, 390e-6) << "two grants, each with a pause";
  }

  static constexpr std::uint64_t kSections = 200;
  KeyedLocks locks_;
  const Behaviour behaviour_ = locks_.behaviour();
};

TEST_F(TransactionRunTest, SortedLocksNeverDeadlock) {
  const results::Run run = run_one(behaviour_);
  expect_complete(run);
  EXPECT_GT(locks_.waits, 0);
  EXPECT_EQ(run.transactions->aborts, 0U);
  EXPECT_EQ(run.transactions->retries, 0U);
  EXPECT_EQ(run.transactions->deadlocks, 0U);
}

TEST_F(TransactionRunTest, ADeadlockOfLocksAsDrawnEndsByATimeOut) {
  plan_.workload.lock_order = LockOrder::drawn;
  const results::Run run = run_one(behaviour_);
  expect_complete(run);
  EXPECT_GT(run.transactions->deadlocks, 0U);
  EXPECT_GE(run.transactions->aborts, run.transactions->deadlocks);
  EXPECT_GE(run.transactions->aborts, run.transactions->retries);
  EXPECT_GT(run.transactions->retries, 0U);
}

/// As PostgreSQL does, with SQLSTATE 40P01.
TEST_F(TransactionRunTest, ADeadlockThatTheStoreBreaksIsCountedAndTheSectionTriesAgain) {
  plan_.workload.lock_order = LockOrder::drawn;
  plan_.workload.deadlock_timeout = 1h;
  int broken = 0;
  Behaviour detecting = behaviour_;
  detecting.acquire = [&](const Context& context, const AcquireRequest& request) {
    const TimePoint found_at = context.env.now() + 3ms;
    AcquireRequest briefly = request;
    briefly.deadline = std::min(request.deadline, found_at);
    AcquireResult result = behaviour_.acquire(context, briefly);
    result.deadlock =
        result.outcome == AcquireOutcome::timed_out && briefly.deadline < request.deadline;
    broken += result.deadlock ? 1 : 0;
    return result;
  };
  const results::Run run = run_one(detecting);
  expect_complete(run);
  EXPECT_GT(broken, 0);
  EXPECT_EQ(run.transactions->deadlocks, static_cast<std::uint64_t>(broken));
  EXPECT_GT(run.transactions->retries, 0U);
  EXPECT_EQ(run.outcomes.failed, 0U);
  EXPECT_EQ(run.outcomes.refused, 0U);
}

TEST_F(TransactionRunTest, ASectionOfOneLockOfATraceWaitsUntilItHasIt) {
  std::string text;
  for (std::uint64_t i = 0; i < kSections; ++i) text += fmt::format("{},0,1,0,2\n", i);
  replay(text);
  plan_.workload.iterations.reset();
  plan_.workload.lock_order = LockOrder::drawn;
  const results::Run run = run_one(behaviour_);
  EXPECT_EQ(run.sections, kSections);
  EXPECT_GT(locks_.waits, 0);
  ASSERT_TRUE(run.transactions);
  EXPECT_EQ(run.transactions->deadlocks, 0U);
}

TEST_F(TransactionRunTest, AllOrNothingNeverWaits) {
  plan_.workload.lock_order = LockOrder::all_or_nothing;
  const results::Run run = run_one(behaviour_);
  expect_complete(run);
  EXPECT_EQ(locks_.waits, 0);
  EXPECT_GT(run.transactions->retries, 0U);
  EXPECT_GT(run.outcomes.refused, 0U);
}

TEST_F(TransactionRunTest, AFailureGivesBackWhatIsHeld) {
  end_after(60);
  Behaviour failing = behaviour_;
  failing.acquire = [&](const Context& context, const AcquireRequest& request) {
    if (request.key.ends_with(":2}")) return outcome(AcquireOutcome::failed, "broken");
    return behaviour_.acquire(context, request);
  };
  const results::Run run = run_one(failing);
  EXPECT_EQ(locks_.grants, locks_.releases);
  EXPECT_GT(run.outcomes.failed, 0U);
  ASSERT_TRUE(run.transactions);
  EXPECT_EQ(run.transactions->aborts, run.outcomes.failed);
  EXPECT_EQ(run.transactions->retries, 0U) << "a store that fails is no contention";
  EXPECT_EQ(run.audit.increments % 2, 0U) << "nothing is written without both locks";
}

TEST_F(TransactionRunTest, NoLockExpiresWhileItsSectionWaitsForAnother) {
  plan_.workload.clients = 1;
  plan_.workload.keys = 2;
  plan_.workload.iterations.reset();
  plan_.workload.duration = 50ms;
  plan_.workload.ttl = 1s;
  hold(100ms);
  TimePoint valid_until{};
  std::vector<Duration> left;
  Behaviour second_is_taken = behaviour_;
  second_is_taken.acquire = [&](const Context& context, const AcquireRequest& request) {
    if (request.key.ends_with(":1}")) {
      left.push_back(valid_until - request.deadline);
      return outcome(AcquireOutcome::timed_out);
    }
    AcquireResult result = behaviour_.acquire(context, request);
    valid_until = context.env.now() + request.ttl;
    result.lease->state = std::make_shared<LeaseState>(valid_until);
    return result;
  };
  run_one(second_is_taken);
  ASSERT_FALSE(left.empty());
  EXPECT_THAT(left, testing::Each(testing::Ge(Duration(100ms)))) << "time for the hold is left";
}

TEST_F(TransactionRunTest, NoFurtherLockIsAskedForWhenTheOthersWouldExpire) {
  plan_.workload.clients = 1;
  plan_.workload.keys = 2;
  end_after(1);  // the figures hold whenever the stop comes
  plan_.workload.ttl = 1s;
  hold(100ms);
  for (const LockOrder order : {LockOrder::sorted, LockOrder::drawn, LockOrder::all_or_nothing}) {
    plan_.workload.lock_order = order;
    stop_ = {};
    int held = 0, asked = 0, asked_while_held = 0;
    const Behaviour slow{.acquire =
                             [&](const Context& context, const AcquireRequest& request) {
                               if (++asked == 20) stop_.request_stop();
                               asked_while_held += held++ > 0 ? 1 : 0;
                               AcquireResult result = grant(request);
                               // As if the answer had taken most of the TTL.
                               result.lease->state =
                                   std::make_shared<LeaseState>(context.env.now() + 150ms);
                               return result;
                             },
                         .release =
                             [&](const Lease&) {
                               --held;
                               return ReleaseResult{ReleaseOutcome::released, {}};
                             }};
    const results::Run run = run_one(slow);
    EXPECT_GE(asked, 20) << "it went on until the stop";
    EXPECT_EQ(asked_while_held, 0);
    EXPECT_EQ(held, 0);
    EXPECT_EQ(run.sections, 0U);
    EXPECT_EQ(run.outcomes.timed_out, 0U) << "no lock was waited for";
    ASSERT_TRUE(run.transactions);
    EXPECT_GT(run.transactions->aborts, 0U);
  }
}

TEST_F(TransactionRunTest, ALockThatExpiresWhileAnotherIsReleasedIsNoViolation) {
  plan_.workload.keys = 2;
  end_after(50);
  Behaviour expiring = behaviour_;
  expiring.release = [&](const Lease& lease) {
    if (lease.key.ends_with(":0}")) return ReleaseResult{ReleaseOutcome::not_owner, {}};
    Lease expired = lease;
    expired.key.replace(expired.key.size() - 2, 1, "0");
    behaviour_.release(expired);
    Carrier::current().wait(nullptr, Carrier::current().now() + 1ms, {});
    return behaviour_.release(lease);
  };
  const results::Run run = run_one(expiring);
  EXPECT_EQ(run.sections, 50U);
  EXPECT_EQ(run.releases_not_owner, 50U);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.lost_updates, 0U);
}

TEST_F(TransactionRunTest, TheLongestWaitIncludesAttemptsInVain) {
  plan_.workload.clients = 1;
  plan_.workload.keys = 2;
  plan_.workload.lock_order = LockOrder::all_or_nothing;
  end_after(1);
  int refusals = 0;
  const results::Run run =
      run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
        context.env.wait(nullptr, context.env.now() + 5ms, {});
        const bool refuse = request.key.ends_with(":1}") && refusals < 5;
        refusals += refuse ? 1 : 0;
        return refuse ? outcome(AcquireOutcome::refused) : grant(request);
      }});
  ASSERT_TRUE(run.transactions);
  EXPECT_EQ(run.transactions->retries, 5U);
  // Five attempts in vain and two grants.
  EXPECT_GE(run.fairness.longest_wait_seconds, 7 * 0.005);
  EXPECT_DOUBLE_EQ(run.fairness.longest_wait_seconds, run.transactions->acquire.max);
  ASSERT_TRUE(run.fairness.by_client);
  EXPECT_GE(run.fairness.by_client->worst_p99, 0.95 * run.fairness.longest_wait_seconds);
}

/// Sections of two locks, half of them shared; not all sections get theirs.
class CutTransactionTest : public LiveRunTest {
 protected:
  CutTransactionTest() {
    plan_.workload.keys = 2;
    plan_.workload.locks_per_section = 2;
    plan_.workload.shared_share = 0.5;
  }

  static std::uint64_t cut(const results::Distribution& distribution) {
    return distribution.censored.count;
  }
};

TEST_F(CutTransactionTest, SectionsThatTimeOutOrAreCutOffAreCensored) {
  plan_.workload.acquire_timeout = 5ms;
  const results::Run run = run_one({.acquire = wait_in_vain});
  ASSERT_TRUE(run.transactions);
  EXPECT_EQ(run.transactions->acquire.count, 0U);
  EXPECT_GT(cut(run.transactions->acquire), 4U);
  EXPECT_EQ(cut(run.transactions->acquire), cut(run.transactions->acquire_service));
  EXPECT_GE(run.transactions->acquire.max, 0.005);
  EXPECT_TRUE(run.transactions->acquire.is_at_least("p50"));
  ASSERT_TRUE(run.acquire_by_mode);
  EXPECT_EQ(run.acquire_by_mode->shared.count + run.acquire_by_mode->exclusive.count, 0U);
  EXPECT_EQ(cut(run.acquire_by_mode->shared) + cut(run.acquire_by_mode->exclusive),
            run.outcomes.timed_out + run.outcomes.abandoned);

  plan_.workload.acquire_timeout = 30s;
  plan_.workload.duration = 400ms;
  const auto at_the_end = run_one({.acquire = wait_in_vain}).transactions.value().acquire;
  EXPECT_EQ(at_the_end.count, 0U);
  EXPECT_EQ(cut(at_the_end), 4U) << "one of each client";
  EXPECT_GE(at_the_end.max, 0.1);
}

TEST_F(CutTransactionTest, SectionsThatNoClientCameToBeginAreCensored) {
  // 100 are due, of which the only client can do five.
  plan_.workload.clients = 1;
  open_loop(1000);
  plan_.workload.duration = 100ms;
  plan_.workload.acquire_timeout = plan_.workload.strategy.command_timeout = 1ms;
  hold(20ms);
  const results::Run run = run_one(leaky_lock);
  ASSERT_TRUE(run.transactions);
  EXPECT_GE(cut(run.transactions->acquire), 90U);
  EXPECT_GE(run.transactions->acquire.p50, 0.02) << "most of them waited for the client";
  EXPECT_TRUE(run.transactions->acquire.is_at_least("p50"));
  ASSERT_TRUE(run.acquire_by_mode);
  EXPECT_GE(cut(run.acquire_by_mode->shared), 40U);
  EXPECT_GE(cut(run.acquire_by_mode->exclusive), 40U);
}

TEST_F(TransactionRunTest, SectionsOfOneLockAreNoneAndHaveLatencyByModeWhereBothOccur) {
  plan_.workload.locks_per_section = 1;
  const results::Run exclusive = run_one(behaviour_);
  EXPECT_FALSE(exclusive.transactions);
  EXPECT_FALSE(exclusive.acquire_by_mode);
  plan_.workload.shared_share = 0.5;
  const results::Run run = run_one(behaviour_);
  ASSERT_TRUE(run.acquire_by_mode);
  EXPECT_GT(run.acquire_by_mode->shared.count, 0U);
  EXPECT_EQ(run.acquire_by_mode->shared.count + run.acquire_by_mode->exclusive.count,
            run.acquire.count);
  plan_.workload.shared_share = 1;
  EXPECT_FALSE(run_one(behaviour_).acquire_by_mode);
}

TEST_F(LiveRunTest, SharedSectionsMayOverlapAndNoneWithAnExclusiveOne) {
  hold(1ms);
  end_after(100);
  plan_.workload.shared_share = 0.5;
  const results::Run mixed = run_one(leaky_lock);
  EXPECT_GT(mixed.audit.overlaps, 0U);
  EXPECT_EQ(mixed.audit.verdict, Verdict::violated);
  plan_.workload.shared_share = 1;
  const results::Run run = run_one(leaky_lock);
  EXPECT_EQ(run.shared_sections, 100U);
  EXPECT_EQ(run.audit.increments, 0U);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::unaudited) << "nothing was written";
  EXPECT_EQ(run.audit.contended_grants, 0U) << "none of them kept another one out";
}

}  // namespace
}  // namespace lockbench::loadgen

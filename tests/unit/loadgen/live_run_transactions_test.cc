#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

/// Locks that exclude. After each grant the client pauses, so that clients meet between two locks.
class KeyedLocks {
 public:
  Behaviour behaviour() {
    return {.acquire = [this](const Context& context,
                              const AcquireRequest& request) { return acquire(context, request); },
            .release =
                [this](const Lease& lease) {
                  {
                    const std::scoped_lock guard(mutex_);
                    taken_[lease.key] = false;
                    ++releases_;
                  }
                  changed_.notify_all();
                  return ReleaseResult{ReleaseOutcome::released, {}};
                }};
  }

  int grants() const { return grants_; }
  int releases() const { return releases_; }
  int waits() const { return waits_; }

 private:
  AcquireResult acquire(const Context& context, const AcquireRequest& request) {
    {
      std::unique_lock guard(mutex_);
      bool& taken = taken_[std::string(request.key)];
      if (taken && request.deadline <= context.env.now()) return outcome(AcquireOutcome::refused);
      waits_ += taken ? 1 : 0;
      while (taken) {
        if (context.env.now() >= request.deadline) return outcome(AcquireOutcome::timed_out);
        changed_.wait_for(guard, 1ms);
      }
      taken = true;
      ++grants_;
    }
    context.env.wait(nullptr, context.env.now() + 200us, {});
    return grant(request);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, bool> taken_;
  int grants_ = 0, releases_ = 0, waits_ = 0;
};

class TransactionRunTest : public LiveRunTest {
 protected:
  TransactionRunTest() {
    Workload& workload = plan_.workload;
    workload.keys = 3;
    workload.locks_per_section = 2;
    workload.deadlock_timeout = 5ms;
    end_after(kSections);
  }

  /// Every section got both its locks, alone, and gave them back.
  void expect_complete(const results::Run& run) const {
    EXPECT_EQ(run.sections, kSections);
    EXPECT_EQ(run.audit.overlaps, 0U);
    EXPECT_EQ(run.audit.lost_updates, 0U);
    EXPECT_GE(run.audit.increments, 2 * kSections);
    EXPECT_EQ(locks_.grants(), locks_.releases());
    ASSERT_TRUE(run.transactions);
    EXPECT_EQ(run.transactions->acquire.count, kSections);
    EXPECT_EQ(run.transactions->acquire_service.count, kSections);
    EXPECT_GE(run.transactions->locks_per_second, 2 * run.transactions->per_second * 0.999);
    EXPECT_GE(run.transactions->acquire.p50, 390e-6) << "two grants, each with a pause";
  }

  static constexpr std::uint64_t kSections = 200;
  KeyedLocks locks_;
  const Behaviour behaviour_ = locks_.behaviour();
};

TEST_F(TransactionRunTest, SortedLocksNeverDeadlock) {
  const results::Run run = run_one(behaviour_);
  expect_complete(run);
  EXPECT_GT(locks_.waits(), 0);
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

TEST_F(TransactionRunTest, TheYoungerGivesWay) {
  plan_.workload.lock_order = LockOrder::drawn;
  plan_.workload.on_deadlock = OnDeadlock::wait_die;
  const results::Run run = run_one(behaviour_);
  expect_complete(run);
  EXPECT_GT(run.transactions->retries, 0U);
}

TEST_F(TransactionRunTest, AllOrNothingNeverWaits) {
  plan_.workload.lock_order = LockOrder::all_or_nothing;
  const results::Run run = run_one(behaviour_);
  expect_complete(run);
  EXPECT_EQ(locks_.waits(), 0);
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
  EXPECT_EQ(locks_.grants(), locks_.releases());
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

TEST_F(TransactionRunTest, SectionsOfOneLockAreNoTransactions) {
  plan_.workload.locks_per_section = 1;
  EXPECT_FALSE(run_one(behaviour_).transactions);
}

TEST_F(TransactionRunTest, LatencyByModeWhereBothOccur) {
  plan_.workload.locks_per_section = 1;
  EXPECT_FALSE(run_one(behaviour_).acquire_by_mode);
  plan_.workload.shared_share = 0.5;
  const results::Run run = run_one(behaviour_);
  ASSERT_TRUE(run.acquire_by_mode);
  EXPECT_GT(run.acquire_by_mode->shared.count, 0U);
  EXPECT_EQ(run.acquire_by_mode->shared.count + run.acquire_by_mode->exclusive.count,
            run.acquire.count);
  plan_.workload.shared_share = 1;
  EXPECT_FALSE(run_one(behaviour_).acquire_by_mode);
}

}  // namespace
}  // namespace lockbench::loadgen

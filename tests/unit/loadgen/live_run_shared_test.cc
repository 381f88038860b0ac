#include <gtest/gtest.h>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Verdict;

/// Grants each section in the mode asked for, by a lock that keeps writers and readers apart, or
/// not.
class SharedLock {
 public:
  explicit SharedLock(bool excludes) : excludes_(excludes) {}

  Behaviour behaviour() {
    return {.acquire =
                [this](const Context& context, const AcquireRequest& request) {
                  if (excludes_) enter(request.mode, context.env);
                  AcquireResult granted = grant(request);
                  granted.lease->mode = request.mode;
                  return granted;
                },
            .release =
                [this](const Lease& lease) {
                  if (excludes_) leave(lease.mode);
                  return ReleaseResult{ReleaseOutcome::released, {}};
                }};
  }

 private:
  void enter(Mode mode, Env& env) {
    while (writing_ > 0 || (mode == Mode::exclusive && readers_ > 0)) {
      env.wait(nullptr, env.now() + 10us, {});
    }
    (mode == Mode::shared ? readers_ : writing_) += 1;
  }
  void leave(Mode mode) { (mode == Mode::shared ? readers_ : writing_) -= 1; }

  const bool excludes_;
  int readers_ = 0, writing_ = 0;
};

class SharedRunTest : public LiveRunTest {
 protected:
  /// That share of the sections reads; the lock keeps writers apart from all others, or it does
  /// not.
  results::Run run_shared(double share, bool excludes) {
    plan_.workload.shared_share = share;
    SharedLock lock(excludes);
    const Behaviour behaviour = lock.behaviour();
    return run_one(behaviour);
  }
};

TEST_F(SharedRunTest, SharedSectionsReadAndDoNotIncrement) {
  hold(100us);
  end_after(400);
  const results::Run run = run_shared(0.5, true);
  EXPECT_EQ(run.sections, 400U);
  EXPECT_GT(run.shared_sections, 100U);
  EXPECT_LT(run.shared_sections, 300U);
  EXPECT_EQ(run.audit.increments, run.sections - run.shared_sections);
  EXPECT_EQ(run.audit.counter, run.audit.increments);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::exclusive);
}

TEST_F(SharedRunTest, ASharedSectionBesideAnExclusiveOneIsAViolation) {
  hold(1ms);
  end_after(200);
  const results::Run run = run_shared(0.5, false);
  EXPECT_GT(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::violated);
}

TEST_F(SharedRunTest, SharedSectionsAloneMayOverlap) {
  hold(1ms);
  end_after(100);
  const results::Run run = run_shared(1, false);
  EXPECT_EQ(run.shared_sections, 100U);
  EXPECT_EQ(run.audit.increments, 0U);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::unaudited) << "nothing was written";
  EXPECT_EQ(run.audit.contended_grants, 0U) << "none of them kept another one out";
}

}  // namespace
}  // namespace lockbench::loadgen

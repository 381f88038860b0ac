#include "tests/unit/loadgen/live_run_fixture.h"

// What applications do wrong around a lock: work without it, and share its connections.

namespace lockbench::loadgen {
namespace {

using results::Verdict;

/// A mutex of one process, of which every third acquisition fails though the lock may be taken.
Descriptor flaky() {
  struct Lock final : LockStrategy {
    explicit Lock(const Context& context)
        : inner(make_strategy(*find_strategy("local-mutex"), context)), env(context.env) {}
    StoreResult<void> connect() override { return {}; }
    AcquireResult acquire(const AcquireRequest& request) override {
      if (++asked % 3 != 0) return inner->acquire(request);
      env.wait(nullptr, env.now() + 1ms, {});
      return outcome(AcquireOutcome::failed, "no connection");
    }
    ReleaseResult release(const Lease& lease) override { return inner->release(lease); }

    const std::unique_ptr<LockStrategy> inner;
    Env& env;
    int asked = 0;
  };
  return {.name = "flaky", .backend = "local", .make = construct<Lock>};
}

TEST_F(LiveRunTest, ASectionThatProceedsWithoutItsLockIsCountedAndBreaksExclusion) {
  plan_.workload.duration = 1s;
  plan_.workload.proceeds_on_error = true;
  hold(2ms);
  const results::Run run = run_one(flaky());
  ASSERT_TRUE(run.application);
  EXPECT_GT(run.application->unprotected, 0U);
  EXPECT_GT(run.audit.overlaps, 0U);
  EXPECT_GT(run.audit.lost_updates, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::violated);
  EXPECT_EQ(run.releases_not_owner + run.releases_failed, 0U) << "there is nothing to release";
}

TEST_F(LiveRunTest, WaitersTakeTheConnectionsOfAPool) {
  plan_.workload.keys = 2;
  plan_.workload.duration = 1s;
  plan_.workload.pool = 1;
  hold(2ms);
  const results::Run run = run_one(named("local-mutex"));
  ASSERT_TRUE(run.application);
  EXPECT_GT(run.application->pool_wait.p50, 0) << "one client has the only connection";
  EXPECT_EQ(run.application->pool_timeouts, 0U);
  EXPECT_LE(run.sections, 501U) << "never two at once, though there are two locks";
}

TEST_F(LiveRunTest, APoolOfWaitersLeavesNoConnectionForTheWork) {
  plan_.workload.duration = 10s;
  plan_.workload.acquire_timeout = 1s;
  plan_.workload.work_connection = true;
  hold(2ms);
  const auto sections = [&](int pool) {
    plan_.workload.pool = pool;
    const results::Run run = run_one(named("local-mutex"));
    return std::pair(run.sections, run.application->pool_timeouts);
  };
  // Four clients: one has the lock, and three wait for it.
  const auto [few, stalls] = sections(4);
  const auto [many, none] = sections(5);
  static_cast<void>(stalls);  // those that wait for the lock give up before its holder does
  EXPECT_EQ(none, 0U);
  EXPECT_GT(many, 100 * std::max<std::uint64_t>(few, 1));
}

}  // namespace
}  // namespace lockbench::loadgen

#include "loadgen/run/run_watcher.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

class Remembering : public RunWatcher {
 public:
  void run_begins(const RunShared& run) override {
    ++begun;
    current = &run;
  }
  void run_ends(const RunShared& run, const results::Run* result) override {
    ++ended;
    if (&run == current && result != nullptr) sections = result->sections;
    had_result = result != nullptr;
  }

  int begun = 0, ended = 0;
  bool had_result = false;
  std::uint64_t sections = 0;
  const RunShared* current = nullptr;
};

class RunWatcherTest : public LiveRunTest {
 protected:
  RunWatcherTest() {
    plan_.workload.clients = 1;
    plan_.workload.duration = 1s;
    plan_.watcher = &remembering_;
  }

  /// With a lock whose first grant takes so long, and the others none.
  results::Run run_stalled(Duration stall) {
    std::atomic<int> asked{0};
    return run_one({.acquire = [&](const Context& context, const AcquireRequest& request) {
      if (asked++ == 0) context.env.wait(nullptr, context.env.now() + stall, {});
      return grant(request);
    }});
  }

  Remembering remembering_;
};

TEST_F(RunWatcherTest, SeesARunsBeginningAndEnd) {
  end_after(10);
  run_one(leaky_lock);
  EXPECT_EQ(remembering_.begun, 1);
  EXPECT_EQ(remembering_.ended, 1);
  EXPECT_EQ(remembering_.sections, 10U);
}

TEST_F(RunWatcherTest, SeesTheEndOfARunThatCannotStart) {
  plan_.endpoints = {{"redis", {"redis://127.0.0.1:1"}}};
  EXPECT_EQ(run({&named("redis-setnx")}).not_started.size(), 1U);
  EXPECT_EQ(remembering_.begun, 1);
  EXPECT_EQ(remembering_.ended, 1);
  EXPECT_FALSE(remembering_.had_result);
}

TEST_F(RunWatcherTest, SectionsThatAreFarTooLateAreNotMadeUpFor) {
  plan_.workload.rate = 1000;
  plan_.workload.arrival = Arrival::constant;
  plan_.workload.longest_lag = 50ms;
  const results::Run run = run_stalled(700ms);
  // 650 of the 700 that came due meanwhile: some may be missed at the beginning, by a slow machine.
  EXPECT_GE(run.outcomes.abandoned, 500U);
  EXPECT_LE(run.outcomes.acquired, 500U);
}

TEST_F(RunWatcherTest, WithoutABoundAllAreMadeUpFor) {
  plan_.workload.rate = 100;
  plan_.workload.arrival = Arrival::constant;
  const results::Run run = run_stalled(600ms);
  // Those that came due during the stall among them: without them it would be 40 at most.
  EXPECT_GE(run.outcomes.acquired, 60U);
}

}  // namespace
}  // namespace lockbench::loadgen

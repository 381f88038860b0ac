#include "loadgen/run/run_watcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "loadgen/run/worker.h"
#include "strategies/registry.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

/// Grants at once, after what it is told to do.
class ObligingLock : public LockStrategy {
 public:
  ObligingLock(const Context& context, std::function<void(Env&)> before)
      : env_(context.env), before_(std::move(before)) {}

  StoreResult<void> connect() override { return {}; }
  AcquireResult acquire(const AcquireRequest& request) override {
    before_(env_);
    AcquireResult result;
    result.outcome = AcquireOutcome::acquired;
    result.attempts = 1;
    result.lease = Lease{.key = std::string(request.key),
                         .state = std::make_shared<LeaseState>(TimePoint::max())};
    return result;
  }
  ReleaseResult release(const Lease&) override { return {ReleaseOutcome::released, {}}; }
  RenewResult renew(const Lease&, Duration) override { return {RenewOutcome::unsupported, {}}; }

 private:
  Env& env_;
  std::function<void(Env&)> before_;
};

Descriptor obliging(const std::function<void(Env&)>& before) {
  return {.name = "obliging", .backend = "local", .make = [before](const Context& context) {
            return std::make_unique<ObligingLock>(context, before);
          }};
}

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

class Silent : public ProgressObserver {
  void on_progress(const Progress&) override {}
  void on_warning(const std::string&) override {}
};

class RunWatcherTest : public testing::Test {
 protected:
  RunWatcherTest() {
    plan_.run_id = "test";
    plan_.workload = {.clients = 1, .duration = 1s, .warmup = 0ms};
    plan_.watcher = &watcher_;
  }
  RunReport run(const Descriptor& strategy) {
    plan_.strategies = {&strategy};
    return run_plan(plan_, silent_, {});
  }

  RunPlan plan_;
  Remembering watcher_;
  Silent silent_;
};

TEST_F(RunWatcherTest, SeesARunsBeginningAndEnd) {
  plan_.workload.iterations = 10;
  EXPECT_EQ(run(obliging([](Env&) {})).runs.size(), 1U);
  EXPECT_EQ(watcher_.begun, 1);
  EXPECT_EQ(watcher_.ended, 1);
  EXPECT_EQ(watcher_.sections, 10U);
}

TEST_F(RunWatcherTest, SeesTheEndOfARunThatCannotStart) {
  plan_.endpoints = {{"redis", {"redis://127.0.0.1:1"}}};
  EXPECT_EQ(run(*find_strategy("redis-setnx")).not_started.size(), 1U);
  EXPECT_EQ(watcher_.begun, 1);
  EXPECT_EQ(watcher_.ended, 1);
  EXPECT_FALSE(watcher_.had_result);
}

TEST_F(RunWatcherTest, SectionsThatAreFarTooLateAreNotMadeUpFor) {
  std::atomic<int> asked{0};
  const Descriptor stalls = obliging([&](Env& env) {
    if (asked.fetch_add(1) == 0) env.wait(nullptr, env.now() + 700ms, {});
  });
  plan_.workload.rate = 1000;
  plan_.workload.arrival = Arrival::constant;
  plan_.workload.longest_lag = 50ms;
  const RunReport report = run(stalls);
  ASSERT_EQ(report.runs.size(), 1U);
  // 650 of the 700 that came due meanwhile: some may be missed at the beginning, by a slow machine.
  EXPECT_GE(report.runs[0].outcomes.abandoned, 500U);
  EXPECT_LE(report.runs[0].outcomes.acquired, 500U);
}

TEST_F(RunWatcherTest, WithoutABoundAllAreMadeUpFor) {
  std::atomic<int> asked{0};
  const Descriptor stalls = obliging([&](Env& env) {
    if (asked.fetch_add(1) == 0) env.wait(nullptr, env.now() + 600ms, {});
  });
  plan_.workload.rate = 100;
  plan_.workload.arrival = Arrival::constant;
  const RunReport report = run(stalls);
  ASSERT_EQ(report.runs.size(), 1U);
  // Those that came due during the stall among them: without them it would be 40 at most.
  EXPECT_GE(report.runs[0].outcomes.acquired, 60U);
}

}  // namespace
}  // namespace lockbench::loadgen

#include <gtest/gtest.h>

#include "loadgen/run/runner.h"
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

}  // namespace
}  // namespace lockbench::loadgen

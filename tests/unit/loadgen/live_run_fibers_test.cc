#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Verdict;
using testing::Each;
using testing::Ge;

/// Runs whose clients are fibers of two threads, in real time.
class LiveRunOnFibers : public LiveRunTest {
 protected:
  LiveRunOnFibers() {
    real_time_ = true;
    plan_.workload.threads = 2;
  }
};

TEST_F(LiveRunOnFibers, AMutexLosesNone) {
  hold(100us);
  plan_.workload.clients = 8;
  end_after(400);
  const results::Run run = run_one(named("local-mutex"));
  EXPECT_EQ(run.sections, 400U);
  EXPECT_EQ(run.audit.counter, 400U);
  EXPECT_EQ(run.audit.overlaps, 0U);
  EXPECT_EQ(run.audit.verdict, Verdict::exclusive);
  EXPECT_GT(run.handoff.count, 0U);
  EXPECT_GT(run.direct_handoffs, 0U);
  EXPECT_LE(run.direct_handoffs, run.awaited_releases);
}

TEST_F(LiveRunOnFibers, ClientsShareAsManyThreadsAsAskedFor) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const Behaviour noting{.acquire = leaky.acquire, .connect = [&](const Context&) {
                           const std::scoped_lock lock(mutex);
                           threads.insert(std::this_thread::get_id());
                           return StoreResult<void>();
                         }};
  plan_.workload.clients = 300;
  hold(1ms);
  end_after(3000);
  const results::Run run = run_one(noting);
  EXPECT_EQ(threads.size(), 2U);
  EXPECT_EQ(run.generator.clients_on, "fibers");
  EXPECT_EQ(run.generator.threads, 2U);
  EXPECT_GT(run.generator.busiest_thread_share.value(), 0);
  EXPECT_EQ(run.sections, 3000U);
  EXPECT_THAT(run.fairness.per_client, Each(Ge(1U))) << "nobody was left out";
}

TEST(GeneratorThreads, LeaveACoreToPrivateServersAndAreNoMoreThanClients) {
  Workload workload{.clients = 100'000};
  const int cores = generator_threads(workload, false);
  EXPECT_GE(cores, 1);
  EXPECT_EQ(generator_threads(workload, true), std::max(1, cores - 1));
  workload.threads = 7;
  EXPECT_EQ(generator_threads(workload, true), 7);
  workload.clients = 3;
  EXPECT_EQ(generator_threads(workload, true), 3);
}

}  // namespace
}  // namespace lockbench::loadgen

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "loadgen/run/local_crew.h"
#include "tests/support/run_shared.h"
#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Verdict;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;

/// Runs whose clients are fibers of two threads, in real time.
class LiveRunInRealTime : public LiveRunTest {
 protected:
  LiveRunInRealTime() {
    real_time_ = true;
    plan_.workload.threads = 2;
  }
};

TEST_F(LiveRunTest, AStopEndsTheRunAndReportsWhatThereIs) {
  plan_.workload.duration = 60s;
  std::atomic<int> acquisitions{0};
  const Behaviour stopping{.acquire = [&](const Context&, const AcquireRequest& request) {
    if (++acquisitions == 20) stop_.request_stop();
    return grant(request);
  }};
  const Descriptor strategy = scripted("stopping", stopping);
  const RunReport report = run({&strategy, &named("none")});
  EXPECT_TRUE(report.interrupted);
  ASSERT_EQ(report.runs.size(), 1U);
  EXPECT_EQ(report.runs[0].strategy, "stopping");
  EXPECT_GE(report.runs[0].sections, 20U);
  EXPECT_LT(report.runs[0].duration_seconds, 60);
  EXPECT_TRUE(report.not_started.empty());
}

TEST_F(LiveRunTest, AStopWhileConnectingIsNoFailure) {
  const Behaviour stopping{.acquire = leaky.acquire, .connect = [&](const Context& context) {
                             stop_.request_stop();
                             context.env.wait(nullptr, context.env.now() + 5ms, {});
                             return StoreResult<void>();
                           }};
  plan_.workload.duration = 60s;
  const RunReport report = run(stopping);
  EXPECT_TRUE(report.interrupted);
  EXPECT_TRUE(report.not_started.empty());
}

TEST_F(LiveRunInRealTime, AStoreThatCannotBeReachedIsNotStartedAndTheOthersRun) {
  std::atomic<int> acquisitions{0};
  const Behaviour unreachable{
      .acquire =
          [&](const Context&, const AcquireRequest& request) {
            ++acquisitions;
            return grant(request);
          },
      .connect = [](const Context& context) -> StoreResult<void> {
        if (context.client < 3) return {};
        return tl::unexpected(StoreError{StoreError::Kind::not_sent, "somewhere:1: no route"});
      }};
  const Descriptor strategy = scripted("unreachable", unreachable);
  end_after(10);
  const RunReport report = run({&strategy, &named("none")});
  ASSERT_EQ(report.not_started.size(), 1U);
  EXPECT_EQ(report.not_started[0].strategy, "unreachable");
  EXPECT_EQ(report.not_started[0].reason, "somewhere:1: no route");
  EXPECT_EQ(acquisitions, 0);
  ASSERT_EQ(report.runs.size(), 1U);
  EXPECT_EQ(report.runs[0].strategy, "none");
  EXPECT_FALSE(report.interrupted);
}

TEST_F(LiveRunTest, AStoreThatFailsIsNotAskedInATightLoop) {
  plan_.workload.duration = 1s;
  for (const AcquireOutcome what : {AcquireOutcome::failed, AcquireOutcome::unknown}) {
    std::atomic<std::uint64_t> asked{0};
    const results::Run run = run_one({.acquire = [&](const Context&, const AcquireRequest&) {
      ++asked;
      return outcome(what, "the store is down");
    }});
    EXPECT_GT(asked, 0U);
    EXPECT_LT(asked, 1000U) << "four clients in a second";
    EXPECT_EQ(what == AcquireOutcome::failed ? run.outcomes.failed : run.outcomes.unknown, asked);
    EXPECT_EQ(run.outcomes.failed + run.outcomes.unknown, asked);
    EXPECT_EQ(run.sections, 0U);
    EXPECT_EQ(run.acquire.count, 0U);
    EXPECT_EQ(run.audit.verdict, Verdict::unaudited);
    ASSERT_EQ(run.errors.size(), 1U);
    EXPECT_EQ(run.errors[0], fmt::format("{} × the store is down", asked.load()));
    std::uint64_t in_series = 0;
    for (const results::SeriesPoint& point : run.series) in_series += point.failed;
    EXPECT_EQ(in_series, asked);
  }
}

TEST_F(LiveRunInRealTime, AClientThatThrowsFailsAndTheOthersGoOn) {
  end_after(50);
  std::atomic<bool> thrown{false};
  const results::Run run = run_one(
      {.acquire = [&](const Context& context, const AcquireRequest& request) -> AcquireResult {
        if (context.client == 1) {
          thrown = true;
          throw std::out_of_range("vector::at");
        }
        while (!thrown) context.env.wait(nullptr, context.env.now() + 1ms, {});
        return grant(request);
      }});
  EXPECT_EQ(run.sections, 49U) << "all but the one that it had begun";
  EXPECT_EQ(run.fairness.per_client.at(1), 0U);
  EXPECT_THAT(run.errors, ElementsAre("1 × client 2 ended: vector::at"));
}

TEST_F(LiveRunTest, WithoutClientsThatWorkTheRunIsOver) {
  plan_.workload.duration = 60s;
  const results::Run run =
      run_one({.acquire = [](const Context&, const AcquireRequest&) -> AcquireResult { throw 1; }});
  EXPECT_LT(run.duration_seconds, 60);
  EXPECT_THAT(run.errors, testing::Contains(testing::HasSubstr("an unknown exception")));
}

TEST_F(LiveRunTest, WhatAServiceReportsFailsTheRun) {
  end_after(5);
  const results::Run run = run_one(
      {.acquire = [](const Context& context, const AcquireRequest& request) -> AcquireResult {
        make_service_env(context.services)->report("leases are not renewed any more");
        return grant(request);
      }});
  EXPECT_THAT(run.errors, ElementsAre(testing::HasSubstr("leases are not renewed any more")));
}

TEST_F(LiveRunTest, AReleaseThatFailedIsCountedWithItsReason) {
  end_after(5);
  const results::Run run = run_one({.acquire = leaky.acquire, .release = [](const Lease&) {
                                      return ReleaseResult{ReleaseOutcome::failed, "no answer"};
                                    }});
  EXPECT_EQ(run.releases_failed, 5U);
  EXPECT_EQ(run.leases_lost, 0U);
  EXPECT_THAT(run.errors, ElementsAre("5 × no answer"));
}

/// A lease that is lost immediately: its end and last confirmation relative to the loss, whether
/// its client has been told, and the expected time to knowledge in seconds, if known.
struct Loss {
  const char* what;
  Duration valid_until;
  std::optional<Duration> confirmed;
  bool told = false;
  std::optional<double> length;
};

TEST_F(LiveRunTest, ALossCountsFromTheEndOfValidityOrFromTheLatestConfirmation) {
  end_after(10);
  for (const Loss& loss :
       {Loss{"after its end", -2s, -60s, false, 2}, Loss{"which was told", -2s, -3s, true, 2},
        Loss{"before its end", 1h, -60s, false, 60}, Loss{"never confirmed", 1h, {}, false, {}}}) {
    const results::Run run =
        run_one({.acquire =
                     [&](const Context& context, const AcquireRequest& request) {
                       AcquireResult granted = grant(request);
                       LeaseState& state = *granted.lease->state;
                       const TimePoint now = context.env.now();
                       state.extend(now + loss.valid_until,
                                    loss.confirmed ? now + *loss.confirmed : TimePoint::min());
                       if (loss.told) state.mark_lost(now);
                       return granted;
                     },
                 .release =
                     [](const Lease&) {
                       return ReleaseResult{ReleaseOutcome::not_owner, {}};
                     }});
    EXPECT_EQ(run.leases_lost, 10U) << loss.what;
    EXPECT_EQ(run.loss_to_knowledge.count, loss.length ? 10U : 0U) << loss.what;
    if (!loss.length) continue;
    EXPECT_GE(run.loss_to_knowledge.min, *loss.length) << loss.what;
    EXPECT_LT(run.loss_to_knowledge.max, *loss.length + 1) << loss.what;
  }
}

TEST_F(LiveRunInRealTime, AMutexLosesNone) {
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
  EXPECT_LE(run.direct_handoffs, run.handoff.count);
  EXPECT_LE(run.handoff.count, run.awaited_releases);
  EXPECT_GT(run.herd_factor.value_or(0), 0);
  EXPECT_GT(run.wait.notified_seconds, 0);
}

TEST_F(LiveRunInRealTime, ClientsShareAsManyThreadsAsAskedFor) {
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

/// The second client's clock takes long to read once, where it is about to begin another wait.
class PreemptedEnv : public ForwardingEnv {
 public:
  PreemptedEnv(std::unique_ptr<Env> inner, const RunShared*& run, TimePoint from, bool& preempted)
      : ForwardingEnv(std::move(inner)), run_(run), from_(from), preempted_(preempted) {}

  TimePoint now() override {
    const TimePoint now = ForwardingEnv::now();
    if (run_ == nullptr || preempted_ || now < from_) return now;
    if (run_->recorder.client(1).since.load() != TimePoint::min()) return now;
    preempted_ = true;
    wait(nullptr, now + 100ms, {});
    return ForwardingEnv::now();
  }

 private:
  const RunShared*& run_;
  const TimePoint from_;
  bool& preempted_;
};

TEST_F(LiveRunTest, TheRunOutSeesAClientThatWasAboutToBeginWhenTheRunnerLooked) {
  struct Begun : RunWatcher {
    void run_begins(const RunShared& begun) override { run = &begun; }
    void run_ends(const RunShared&, const results::Run*) override { run = nullptr; }
    const RunShared* run = nullptr;
  } watcher;
  test::on_virtual_time([&] {
    const TimePoint begun = Carrier::current().now();
    TimePoint latest = begun;
    // The first client's wait ends, and it begins another one, while the second is preempted.
    const Behaviour behaviour{.acquire = [&](const Context& context,
                                             const AcquireRequest& request) {
      const TimePoint now = latest = context.env.now();
      const bool last_of_window = context.client == 0 && now < begun + 1s && now > begun + 900ms;
      context.env.wait(nullptr, last_of_window ? begun + 1070ms : now + 1ms, request.stop);
      return grant(request);
    }};
    const Descriptor strategy = scripted("scripted", behaviour);
    plan_.strategies = {&strategy};
    plan_.watcher = &watcher;
    plan_.workload.clients = 2;
    plan_.workload.duration = 1s;
    bool preempted = false;
    plan_.make_env = [&](std::uint64_t seed) {
      return std::make_unique<PreemptedEnv>(make_system_env(seed), watcher.run, begun + 1020ms,
                                            preempted);
    };
    EXPECT_EQ(run_plans({&plan_, 1}, watcher_, {}).runs.size(), 1U);
    EXPECT_TRUE(preempted);
    EXPECT_GE(latest, begun + 1070ms);
    EXPECT_LE(latest, begun + 1200ms) << "when the last wait of the window had ended";
  });
}

/// A clock that jumps, as for a process that is stopped.
class JumpingClock : public ForwardingEnv {
 public:
  explicit JumpingClock(TimePoint at) : ForwardingEnv(make_system_env(1)), at_(at) {}

  TimePoint now() override {
    const TimePoint time = ForwardingEnv::now();
    return time < at_ ? time : time + 300ms;
  }

 private:
  const TimePoint at_;
};

TEST(LocalCrew, NoticesThatItsProcessStoodStill) {
  const Descriptor strategy{.name = "tested"};
  test::RunUnderTest under_test(strategy);
  RunShared& run = under_test.shared();
  run.threads = fibers::Pool::make(1).value();
  const auto stood_still = [&run](Duration warmup) {
    Duration found{};
    test::on_virtual_time([&] {
      const TimePoint begun = Carrier::current().now();
      run.measure_start = begun + warmup;
      JumpingClock clock(begun + 70ms);
      LocalCrew crew(run, clock, {});
      crew.begin();
      EXPECT_FALSE(crew.wait(begun + 1s));
      found = crew.stood_still();
    });
    return found;
  };
  EXPECT_EQ(stood_still(0s), 300ms);
  EXPECT_EQ(stood_still(10s), 0s) << "that was in the warm-up";
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

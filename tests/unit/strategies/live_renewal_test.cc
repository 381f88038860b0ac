#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/renewal.h"
#include "tests/support/eventually.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;
using test::eventually;

/// On a thread of its own, in the real world.
class LiveChannel : public RenewalChannel {
 public:
  explicit LiveChannel(std::atomic<int>& asked) : asked_(asked) {}
  void queue(std::string_view, std::string_view, Duration) override { ++asked_; }
  void flush(const std::stop_token&) override {}
  RenewalAnswer answer(const std::stop_token&) override { return RenewalAnswer::renewed; }
  std::string failure() const override { return {}; }

 private:
  std::atomic<int>& asked_;
};

/// Tells the test when its thread goes to sleep.
class DrowsyWorld : public ForwardingEnv {
 public:
  DrowsyWorld(std::unique_ptr<Env> inner, std::atomic<int>& sleeps)
      : ForwardingEnv(std::move(inner)), sleeps_(sleeps) {}
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    ++sleeps_;
    return ForwardingEnv::wait(event, deadline, stop);
  }

 private:
  std::atomic<int>& sleeps_;
};

struct LiveReports : StrategyObserver {
  void on_renewal(const RenewalReport&) override { ++count; }
  std::atomic<int> count{0};
};

RenewalOrder live_order() {
  const TimePoint now = Carrier::current().now();
  return {.key = "k",
          .token = "t",
          .state = std::make_shared<LeaseState>(now + test::kPatience, now),
          .granted_at = now,
          .ttl = test::kPatience,
          .timing = {.every = 1ms},
          .channels = {"one"}};
}

TEST(LiveRenewal, ManyThreadsStartAndStopRenewals) {
  LiveReports reports;
  std::atomic<int> asked{0};
  RenewalScheduler scheduler(make_system_env(1), reports);
  scheduler.provide_channel("one", [&](Env&) { return std::make_unique<LiveChannel>(asked); });
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 300; ++i) {
          const RenewalOrder made = live_order();
          const auto kept = scheduler.keep(made);
          if (i % 3 == 0) {
            EXPECT_TRUE(eventually([&asked, before = asked.load()] { return asked > before; }));
          }
          if (i % 2 == 0) kept->stop();
          EXPECT_EQ(made.state->lost_at(), std::nullopt);
        }
      });
    }
  }
  // Renewals under way at the end are released by the scheduler's thread.
  EXPECT_TRUE(eventually([&] { return scheduler.kept() == 0; }));
  EXPECT_GT(asked, 0);
}

TEST(LiveRenewal, WakesForARenewalThatIsDueEarlier) {
  LiveReports reports;
  std::atomic<int> asked{0}, sleeps{0};
  RenewalScheduler scheduler(std::make_unique<DrowsyWorld>(make_system_env(1), sleeps), reports);
  scheduler.provide_channel("one", [&](Env&) { return std::make_unique<LiveChannel>(asked); });
  RenewalOrder late = live_order();
  late.timing.every = 1h;
  const auto first = scheduler.keep(std::move(late));
  ASSERT_TRUE(eventually([&] { return sleeps > 0; }));
  const auto second = scheduler.keep(live_order());
  EXPECT_TRUE(eventually([&] { return reports.count > 0; }));
}

}  // namespace
}  // namespace lockbench

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "loadgen/experiments/renewal_experiment.h"
#include "tests/support/fake_renewal_channel.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

/// Locks on simulated time, taken when the plan says and renewed by the scheduler of a run.
class PlannedLocks {
 public:
  explicit PlannedLocks(const HeldLocksPlan& plan) : plan_(plan) {
    scheduler_.provide_channel("one", [this](Env&) { return store_.connect(); });
    const TimePoint begun = clock_.now();
    for (std::uint64_t number = 0; number < plan.count; ++number) {
      run_until(begun + plan.taken_after(number));
      renewals_.push_back(scheduler_.keep(order(number)));
    }
    run_until(begun + plan.period());
  }

  std::size_t renewed_in(Duration window) {
    const std::size_t before = store_.asked().size();
    run_until(clock_.now() + window);
    return store_.asked().size() - before;
  }

 private:
  RenewalOrder order(std::uint64_t number) {
    return {.key = plan_.key(number),
            .token = "token",
            .state = std::make_shared<LeaseState>(clock_.now() + plan_.ttl, clock_.now()),
            .granted_at = clock_.now(),
            .ttl = plan_.ttl,
            .channels = {"one"}};
  }

  void run_until(TimePoint end) {
    constexpr int kMost = 100'000;
    for (int i = 0; i < kMost; ++i) {
      const TimePoint next = scheduler_.run_due();
      if (next > end) break;
      clock_.advance_to(std::max(next, clock_.now()));
    }
    if (clock_.now() < end) clock_.advance_to(end);
  }

  const HeldLocksPlan& plan_;
  SimClock clock_;
  FakeRenewalStore store_{clock_};
  StrategyObserver ignored_;
  RenewalScheduler scheduler_{std::make_unique<SimEnv>(clock_), ignored_,
                              RenewalScheduler::Drive::by_hand};
  std::vector<std::shared_ptr<Renewal>> renewals_;
};

/// The renewals in windows of this length, one for each pair of runs.
double renewed(std::uint64_t held, Duration ttl, Duration window, int pairs) {
  const Endpoints endpoints;
  const StrategyOptions options;
  std::size_t all = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    const HeldLocksPlan plan{.endpoints = endpoints,
                             .options = options,
                             .key_prefix = "{held:",
                             .count = held,
                             .ttl = ttl,
                             .phase = phase_of_pair(pair, pairs)};
    all += PlannedLocks(plan).renewed_in(window);
  }
  return static_cast<double>(all);
}

// A window of one and a half periods used to count one renewal of each lock, or two: all were
// renewed at once.
TEST(HeldLocks, AreRenewedAtTheRateThatTheirTtlAsksFor) {
  for (const Duration window : {700ms, 1000ms, 1500ms, 1999ms, 2600ms}) {
    EXPECT_NEAR(renewed(100, 3s, window, 1), 100 * seconds(window), 1) << seconds(window);
  }
  EXPECT_NEAR(renewed(1000, 10s, 3830ms, 1), 300 * 3.83, 1);
}

TEST(HeldLocks, FewAreCountedRightlyOverAllPairs) {
  for (const Duration window : {1000ms, 1250ms, 1500ms, 1900ms}) {
    EXPECT_NEAR(renewed(1, 3s, window, 8), 8 * seconds(window), 1) << seconds(window);
    EXPECT_NEAR(renewed(3, 3s, window, 5), 3 * 5 * seconds(window), 1) << seconds(window);
  }
}

}  // namespace
}  // namespace lockbench::loadgen

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "strategies/renewal.h"
#include "tests/support/fake_renewal_channel.h"

namespace lockbench {

struct Reports : StrategyObserver {
  void on_renewal(const RenewalReport& report) override { all.push_back(report); }
  std::vector<RenewalReport> all;
};

/// The scheduler on simulated time.
class RenewalTest : public testing::Test {
 protected:
  FakeRenewalStore& store(const std::string& name) {
    FakeRenewalStore& made = stores_.emplace_back(clock_);
    scheduler_.provide_channel(name, [&](Env&) { return made.connect(); });
    return made;
  }

  RenewalOrder order(const std::string& key, Duration ttl = std::chrono::seconds(9)) {
    return {.key = key,
            .token = "token of " + key,
            .state = std::make_shared<LeaseState>(clock_.now() + ttl, clock_.now()),
            .granted_at = clock_.now(),
            .ttl = ttl,
            .channels = {"one"}};
  }

  /// Runs the scheduler.
  void run(Duration time) {
    const TimePoint end = clock_.now() + time;
    constexpr int kMost = 100'000;
    for (int i = 0; i < kMost; ++i) {
      const TimePoint next = scheduler_.run_due();
      if (next > end) break;
      clock_.advance_to(std::max(next, clock_.now()));
    }
    if (clock_.now() < end) clock_.advance_to(end);
  }

  std::vector<std::string> keys_asked(const FakeRenewalStore& store) {
    std::vector<std::string> keys;
    for (const auto& asked : store.asked()) keys.push_back(asked.key);
    return keys;
  }

  SimClock clock_;
  Reports reports_;
  std::deque<FakeRenewalStore> stores_;
  RenewalScheduler scheduler_{std::make_unique<SimEnv>(clock_), reports_,
                              RenewalScheduler::Drive::by_hand};
  const TimePoint start_ = clock_.now();
};
}  // namespace lockbench

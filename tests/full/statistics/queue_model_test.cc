#include "results/stats/queue_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace lockbench::results {
namespace {

constexpr double kFree = 0.0001, kHold = 0.0019;
constexpr double kBusiest = 1 / 0.002;  ///< sections a second, if the handoff is as for a free lock

/// From acquire to grant at one lock, sorted: Lindley's recursion, in which those that wait take
/// the handoff too.
std::vector<double> simulated_acquires(double rate, double handoff,
                                       const std::function<double(std::mt19937_64&)>& hold) {
  constexpr int kSections = 1'000'000;
  std::mt19937_64 random(5);
  std::exponential_distribution<double> gap(rate);
  std::vector<double> acquires;
  acquires.reserve(kSections);
  double until_released = 0;
  for (int i = 0; i < kSections; ++i) {
    const double acquire = until_released > 0 ? until_released + handoff : kFree;
    acquires.push_back(acquire);
    until_released = std::max(0.0, acquire + hold(random) - gap(random));
  }
  std::sort(acquires.begin(), acquires.end());
  return acquires;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

struct Hold {
  const char* name;
  double variance;
  std::function<double(std::mt19937_64&)> draw;
  double tail_error;  ///< that the approximation of p99 may have
};

std::vector<Hold> holds() {
  return {
      {"fixed", 0, [](auto&) { return kHold; }, 0.35},
      {"exponential", kHold * kHold,
       [](auto& random) { return std::exponential_distribution<double>(1 / kHold)(random); }, 0.05},
      {"uniform", kHold * kHold / 3,
       [](auto& random) { return std::uniform_real_distribution<double>(0, 2 * kHold)(random); },
       0.25}};
}

TEST(QueueModel, WaitsAreThoseOfASimulatedQueue) {
  for (const Hold& hold : holds()) {
    const QueueModel model{.hold_mean = kHold,
                           .hold_variance = hold.variance,
                           .handoff_mean = kFree,
                           .free_seconds = kFree};
    for (const double busy : {0.3, 0.6, 0.85}) {
      const double rate = busy * kBusiest;
      const auto acquires = simulated_acquires(rate, kFree, hold.draw);
      const double mean = mean_of(acquires), p99 = acquires[acquires.size() * 99 / 100];
      EXPECT_NEAR(*model.mean_acquire(rate), mean, 0.05 * mean) << hold.name << " at " << busy;
      EXPECT_NEAR(*model.acquire_percentile(rate, 0.99), p99, hold.tail_error * p99)
          << hold.name << " at " << busy;
    }
  }
}

TEST(QueueModel, AHandoffIsTakenOnlyByThoseThatWait) {
  constexpr double kPolled = 0.05;
  const QueueModel model{.hold_mean = kHold, .handoff_mean = kPolled, .free_seconds = kFree};
  for (const double rate : {2.0, 8.0, 14.0}) {
    const auto acquires = simulated_acquires(rate, kPolled, [](auto&) { return kHold; });
    const double mean = mean_of(acquires);
    EXPECT_NEAR(*model.mean_acquire(rate), mean, 0.1 * mean) << "at " << rate << "/s";
  }
}

TEST(QueueModel, OfMoreThanItCanServeThereIsNoWait) {
  const QueueModel model{.hold_mean = kHold, .handoff_mean = kFree};
  EXPECT_TRUE(model.mean_acquire(499).has_value());
  EXPECT_FALSE(model.acquire_percentile(500, 0.99).has_value());
  EXPECT_FALSE(model.mean_acquire(600).has_value());
}

TEST(QueueModel, AFreeLockTakesItsWay) {
  const QueueModel model{.hold_mean = kHold, .free_seconds = kFree};
  EXPECT_NEAR(*model.mean_acquire(0.001), kFree, 1e-7);
  EXPECT_DOUBLE_EQ(*model.acquire_percentile(0.001, 0.99), kFree);
}

}  // namespace
}  // namespace lockbench::results

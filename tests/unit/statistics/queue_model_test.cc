#include "results/stats/queue_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace lockbench::results {
namespace {

constexpr double kMean = 0.002;

/// Waits of a queue with one server, by Lindley's recursion, sorted.
std::vector<double> simulated_waits(double rate,
                                    const std::function<double(std::mt19937_64&)>& service) {
  constexpr int kSections = 1'000'000;
  std::mt19937_64 random(5);
  std::exponential_distribution<double> gap(rate);
  std::vector<double> waits;
  waits.reserve(kSections);
  double wait = 0;
  for (int i = 0; i < kSections; ++i) {
    waits.push_back(wait);
    wait = std::max(0.0, wait + service(random) - gap(random));
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

struct Service {
  const char* name;
  double variance;
  std::function<double(std::mt19937_64&)> draw;
  double tail_error;  ///< that the approximation of p99 may have
};

std::vector<Service> services() {
  return {
      {"fixed", 0, [](auto&) { return kMean; }, 0.35},
      {"exponential", kMean * kMean,
       [](auto& random) { return std::exponential_distribution<double>(1 / kMean)(random); }, 0.05},
      {"uniform", kMean * kMean / 3,
       [](auto& random) { return std::uniform_real_distribution<double>(0, 2 * kMean)(random); },
       0.25}};
}

TEST(QueueModel, WaitsAreThoseOfASimulatedQueue) {
  for (const Service& service : services()) {
    const QueueModel model{.service_mean = kMean, .service_variance = service.variance};
    for (const double busy : {0.3, 0.6, 0.85}) {
      const double rate = busy / kMean;
      const auto waits = simulated_waits(rate, service.draw);
      const double mean = mean_of(waits), p99 = waits[waits.size() * 99 / 100];
      EXPECT_NEAR(*model.mean_wait(rate), mean, 0.05 * mean) << service.name << " at " << busy;
      EXPECT_NEAR(*model.wait_percentile(rate, 0.99), p99, service.tail_error * p99)
          << service.name << " at " << busy;
    }
  }
}

TEST(QueueModel, OfMoreThanItCanServeThereIsNoWait) {
  const QueueModel model{.service_mean = kMean};
  EXPECT_TRUE(model.mean_wait(499).has_value());
  EXPECT_FALSE(model.mean_wait(500).has_value());
  EXPECT_FALSE(model.acquire_percentile(600, 0.99).has_value());
  EXPECT_FALSE(model.mean_acquire(600).has_value());
}

TEST(QueueModel, AFreeLockTakesItsWay) {
  const QueueModel model{.service_mean = kMean, .free_seconds = 100e-6};
  EXPECT_NEAR(*model.mean_acquire(0.001), 100e-6, 1e-7);
  EXPECT_DOUBLE_EQ(*model.acquire_percentile(0.001, 0.99), 100e-6);
  EXPECT_DOUBLE_EQ(*model.wait_percentile(0.001, 0.99), 0);
}

}  // namespace
}  // namespace lockbench::results

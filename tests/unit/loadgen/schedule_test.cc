#include "loadgen/run/demand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <latch>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{std::chrono::seconds(1000)};

std::vector<TimePoint> take(Schedule& schedule, std::size_t count) {
  std::vector<TimePoint> times;
  for (std::size_t i = 0; i < count; ++i) times.push_back(schedule.next());
  return times;
}

TEST(Schedule, ConstantSpacingIsExactAndDoesNotDrift) {
  Schedule thousand(1000, Arrival::constant, kStart, 1);
  for (int n = 0; n < 5000; ++n) {
    ASSERT_EQ(thousand.next(), kStart + std::chrono::milliseconds(n));
  }
  // A third of a second has no end in nanoseconds; the millionth start is still right.
  Schedule thirds(3, Arrival::constant, kStart, 1);
  TimePoint last{};
  for (int n = 0; n <= 300'000; ++n) last = thirds.next();
  EXPECT_EQ(last, kStart + std::chrono::seconds(100'000));
}

TEST(Schedule, SameSeedSameTimes) {
  Schedule first(500, Arrival::poisson, kStart, 42);
  Schedule second(500, Arrival::poisson, kStart, 42);
  Schedule other(500, Arrival::poisson, kStart, 43);
  const auto times = take(first, 100);
  EXPECT_EQ(times, take(second, 100));
  EXPECT_NE(times, take(other, 100));
}

TEST(Schedule, PoissonGapsAreExponential) {
  constexpr std::size_t kCount = 20'000;
  Schedule schedule(1000, Arrival::poisson, kStart, 7);
  std::vector<double> gaps;  // in units of the mean gap
  TimePoint previous = kStart;
  for (std::size_t i = 0; i < kCount; ++i) {
    const TimePoint next = schedule.next();
    ASSERT_GE(next, previous);
    gaps.push_back(static_cast<double>((next - previous).count()) / 1e6);
    previous = next;
  }
  // Kolmogorov and Smirnov: at this distance one sample in a thousand would be rejected wrongly.
  std::sort(gaps.begin(), gaps.end());
  double distance = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double theory = 1 - std::exp(-gaps[i]);
    distance = std::max({distance, std::abs(theory - static_cast<double>(i) / kCount),
                         std::abs(static_cast<double>(i + 1) / kCount - theory)});
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(double{kCount}));
}

TEST(Schedule, SeveralClientsShareOneSequence) {
  constexpr std::size_t kClients = 4;
  constexpr std::size_t kEach = 20'000;
  for (const Arrival arrival : {Arrival::constant, Arrival::poisson}) {
    Schedule alone(1e6, arrival, kStart, 9);
    const auto expected = take(alone, kClients * kEach);

    Schedule shared(1e6, arrival, kStart, 9);
    std::vector<std::vector<TimePoint>> taken(kClients);
    {
      std::latch all_there(kClients);
      std::vector<std::jthread> clients;
      clients.reserve(kClients);
      for (auto& mine : taken) {
        clients.emplace_back([&] {
          all_there.arrive_and_wait();
          mine = take(shared, kEach);
        });
      }
    }
    std::vector<TimePoint> all;
    for (const auto& mine : taken) {
      EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
      all.insert(all.end(), mine.begin(), mine.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, expected);
  }
}

TEST(Schedule, ARateMustBeAboveZeroAndFinite) {
  for (const double rate : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(Schedule(rate, Arrival::constant, kStart, 1), std::invalid_argument) << rate;
  }
}

TEST(Schedule, AnAbsurdlyLowRateStaysWithinTime) {
  Schedule schedule(1e-300, Arrival::constant, kStart, 1);
  EXPECT_EQ(schedule.next(), kStart);
  EXPECT_GT(schedule.next(), kStart + std::chrono::hours(24 * 365));
}

TEST(Schedule, StartsThatNobodyTakesAreCounted) {
  Schedule constant(1000, Arrival::constant, kStart, 1);
  take(constant, 10);
  const auto rest = constant.due_before(kStart + std::chrono::milliseconds(100));
  EXPECT_EQ(rest.count, 90U);
  EXPECT_EQ(rest.longest, std::chrono::milliseconds(90));
  EXPECT_EQ(constant.due_before(kStart).count, 0U);

  // Too many to take one by one.
  Schedule poisson(1e7, Arrival::poisson, kStart, 1);
  EXPECT_NEAR(static_cast<double>(poisson.due_before(kStart + std::chrono::hours(1)).count), 3.6e10,
              1e6);
}

}  // namespace
}  // namespace lockbench::loadgen

#include "exporter/run_metrics.h"

#include <gtest/gtest.h>

namespace lockbench::exporter {
namespace {

using namespace std::chrono_literals;

LatencyBuckets of(std::initializer_list<Duration> samples) {
  loadgen::HistogramSnapshot fine;
  for (const Duration sample : samples) fine.record(sample);
  LatencyBuckets buckets;
  buckets.add(fine);
  return buckets;
}

TEST(LatencyBucketsTest, BoundsDoubleFromFiveMicroseconds) {
  EXPECT_EQ(LatencyBuckets::bound(0), 5'000);
  EXPECT_EQ(LatencyBuckets::bound(1), 10'000);
  EXPECT_EQ(LatencyBuckets::bound(24), 83'886'080'000);
}

TEST(LatencyBucketsTest, EachSampleLiesBelowItsBound) {
  const auto sums = of({1us, 4us, 7us, 15us, 80s}).cumulative();
  EXPECT_EQ(sums[0], 2U);
  EXPECT_EQ(sums[1], 3U);
  EXPECT_EQ(sums[2], 4U);
  EXPECT_EQ(sums[23], 4U);
  EXPECT_EQ(sums[24], 5U);
}

TEST(LatencyBucketsTest, ABoundIsMetWithinTheFineHistogramsError) {
  for (std::size_t n = 0; n < LatencyBuckets::kBounds; ++n) {
    const Duration bound(LatencyBuckets::bound(n));
    EXPECT_EQ(of({bound * 98 / 100}).cumulative()[n], 1U) << n;
    EXPECT_EQ(of({bound * 102 / 100}).cumulative()[n], 0U) << n;
  }
}

TEST(LatencyBucketsTest, WhatLiesAboveAllBoundsCountsToo) {
  const LatencyBuckets buckets = of({90s, 2h});
  EXPECT_EQ(buckets.cumulative().back(), 0U);
  EXPECT_EQ(buckets.count(), 2U);
  EXPECT_DOUBLE_EQ(buckets.sum_seconds(), 7290);
}

TEST(LatencyBucketsTest, AddsUp) {
  LatencyBuckets sum = of({1us, 2h});
  sum += of({1us, 1s});
  EXPECT_EQ(sum.count(), 4U);
  EXPECT_EQ(sum.cumulative()[0], 2U);
  EXPECT_DOUBLE_EQ(sum.sum_seconds(), 7201.000002);
}

constexpr TimePoint kBegun{1h};

TEST(FairnessWindow, IsTheWholeRunAtFirst) {
  FairnessWindow window(2, kBegun);
  EXPECT_EQ(window.jain({0, 0}, kBegun), 0);
  EXPECT_DOUBLE_EQ(window.jain({4, 4}, kBegun + 1s), 1);
  EXPECT_DOUBLE_EQ(window.jain({8, 0}, kBegun + 2s), 0.5);
}

TEST(FairnessWindow, ForgetsWhatWasLongAgo) {
  FairnessWindow window(2, kBegun);
  // An hour in which both got the same.
  std::uint64_t each = 0;
  TimePoint now = kBegun;
  for (; now < kBegun + 1h; now += 10s) {
    each += 10;
    EXPECT_DOUBLE_EQ(window.jain({each, each}, now), 1);
  }
  // Then one of them starves.
  double jain = 1;
  for (int reading = 0; reading < 7; ++reading, now += 10s) {
    jain = window.jain({each + 10 * (1 + static_cast<std::uint64_t>(reading)), each}, now);
  }
  EXPECT_DOUBLE_EQ(jain, 0.5) << "after a minute nothing else is left";
  // Then nobody gets anything.
  for (int reading = 0; reading < 7; ++reading, now += 10s) {
    jain = window.jain({each + 70, each}, now);
  }
  EXPECT_EQ(jain, 0);
}

}  // namespace
}  // namespace lockbench::exporter

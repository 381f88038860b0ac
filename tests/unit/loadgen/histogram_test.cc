#include "loadgen/record/histogram.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <functional>
#include <latch>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace lockbench::loadgen {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Layout = HistogramLayout;

HistogramSnapshot snapshot_of(const std::vector<std::int64_t>& samples) {
  HistogramSnapshot snapshot;
  for (const std::int64_t sample : samples) snapshot.record(nanoseconds(sample));
  return snapshot;
}

void expect_equal(const HistogramSnapshot& one, const HistogramSnapshot& other) {
  EXPECT_EQ(one.buckets, other.buckets);
  EXPECT_EQ(one.overflow, other.overflow);
  EXPECT_EQ(one.sum, other.sum);
  EXPECT_EQ(one.min, other.min);
  EXPECT_EQ(one.max, other.max);
}

TEST(HistogramLayout, BucketsFollowEachOtherWithoutGapOrOverlap) {
  ASSERT_EQ(Layout::lower(0), 0);
  for (std::size_t i = 0; i < kHistogramBuckets; ++i) {
    ASSERT_LE(Layout::lower(i), Layout::midpoint(i)) << i;
    ASSERT_LE(Layout::midpoint(i), Layout::upper(i)) << i;
    ASSERT_EQ(Layout::upper(i) + 1, Layout::lower(i + 1)) << i;
    ASSERT_EQ(Layout::index(Layout::lower(i)), i);
    if (i + 1 < kHistogramBuckets) {
      ASSERT_EQ(Layout::index(Layout::upper(i)), i);
    }
  }
  EXPECT_GE(Layout::upper(kHistogramBuckets - 1), Layout::kHighest);
}

using Draw = std::function<double(std::mt19937_64&)>;

std::vector<std::pair<std::string, Draw>> shapes() {
  return {{"constant", [](auto&) { return 1'234'567.0; }},
          {"lognormal", std::lognormal_distribution(12.0, 2.0)},
          {"bimodal",
           [](auto& random) {
             const double mode = std::bernoulli_distribution(0.02)(random) ? 2e8 : 4e4;
             return std::abs(std::normal_distribution(mode, mode / 10)(random));
           }},
          {"tiny", std::uniform_real_distribution(0.0, 300.0)},
          {"near an hour", std::uniform_real_distribution(3.4e12, 3.6e12)}};
}

TEST(Histogram, PercentilesAreWithinOnePercentOfTheExactOnes) {
  EXPECT_LE(Layout::kRelativeError, 0.01) << "as results say";
  for (const auto& [shape, draw] : shapes()) {
    for (const std::size_t size : {1U, 2U, 99U, 1000U, 50'000U}) {
      std::mt19937_64 random(size);
      std::vector<std::int64_t> samples;
      for (std::size_t i = 0; i < size; ++i) {
        samples.push_back(static_cast<std::int64_t>(draw(random)));
      }
      const HistogramSnapshot snapshot = snapshot_of(samples);
      std::sort(samples.begin(), samples.end());
      for (const double q : {0.0, 0.001, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
        const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(size) - 1e-6));
        const auto exact = static_cast<double>(samples[rank == 0 ? 0 : rank - 1]);
        const auto measured = static_cast<double>(snapshot.percentile(q).count());
        EXPECT_NEAR(measured, exact, exact * 0.01) << shape << " n=" << size << " q=" << q;
      }
      EXPECT_EQ(snapshot.min.count(), samples.front()) << shape;
      EXPECT_EQ(snapshot.max.count(), samples.back()) << shape;
    }
  }
}

TEST(Histogram, CountMeanAndDeviationMatchTheSamples) {
  const HistogramSnapshot snapshot = snapshot_of({1'000'000, 2'000'000, 3'000'000, 6'000'000});
  EXPECT_EQ(snapshot.count(), 4U);
  EXPECT_EQ(snapshot.mean(), milliseconds(3));
  EXPECT_NEAR(static_cast<double>(snapshot.stddev().count()), std::sqrt(3.5) * 1e6, 2e4);
  EXPECT_EQ(snapshot_of({1'234'567, 1'234'567}).stddev(), Duration::zero());
}

TEST(Histogram, WithoutSamplesEverythingIsZero) {
  const HistogramSnapshot snapshot = ShardedHistogram().snapshot();
  EXPECT_EQ(snapshot.count(), 0U);
  EXPECT_EQ(snapshot.percentile(0.99), Duration::zero());
  EXPECT_EQ(snapshot.mean(), Duration::zero());
  EXPECT_EQ(snapshot.stddev(), Duration::zero());
  EXPECT_EQ(snapshot.min, Duration::zero());
  EXPECT_EQ(snapshot.max, Duration::zero());
  EXPECT_TRUE(to_distribution(snapshot).buckets.empty());
}

TEST(Histogram, TheLongestDurationIsASampleToo) {
  ShardedHistogram histogram(2);
  histogram.record(Duration::max());
  EXPECT_FALSE(histogram.empty());
  EXPECT_EQ(histogram.snapshot().overflow, 1U);
  EXPECT_EQ(histogram.snapshot().max, Duration::max());
}

TEST(Histogram, WhatIsNegativeCountsAsZeroAndWhatIsAboveAnHourAsOverflow) {
  ShardedHistogram histogram;
  histogram.record(nanoseconds(-5));
  EXPECT_EQ(histogram.snapshot().max, Duration::zero());
  EXPECT_EQ(histogram.snapshot().sum, Duration::zero());
  histogram.record(hours(1));
  EXPECT_EQ(histogram.snapshot().overflow, 0U);
  histogram.record(hours(1) + nanoseconds(1));
  histogram.record(hours(5));
  const HistogramSnapshot snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.overflow, 2U);
  EXPECT_EQ(snapshot.count(), 4U);
  EXPECT_EQ(snapshot.max, hours(5));
  EXPECT_EQ(snapshot.percentile(1.0), hours(5));
  EXPECT_NEAR(static_cast<double>(snapshot.percentile(0.5).count()), 3.6e12, 3.6e10);
  EXPECT_EQ(snapshot.sum, hours(7) + nanoseconds(1));
}

TEST(Histogram, MergingIsLikeRecordingBoth) {
  const std::vector<std::int64_t> left{5, 700, 80'000};
  const std::vector<std::int64_t> right{3, 700, 4'000'000'000'000};
  std::vector<std::int64_t> both = left;
  both.insert(both.end(), right.begin(), right.end());

  HistogramSnapshot merged = snapshot_of(left);
  merged.merge(snapshot_of(right));
  merged.merge(HistogramSnapshot{});
  expect_equal(merged, snapshot_of(both));

  HistogramSnapshot from_empty;
  from_empty.merge(snapshot_of(left));
  EXPECT_EQ(from_empty.min, nanoseconds(5));
}

TEST(Histogram, MinusLeavesWhatCameInBetween) {
  ShardedHistogram histogram;
  histogram.record(nanoseconds(7));
  histogram.record(hours(2));
  const HistogramSnapshot earlier = histogram.snapshot();
  histogram.record(microseconds(100));
  histogram.record(microseconds(300));
  const HistogramSnapshot interval = histogram.snapshot().minus(earlier);
  EXPECT_EQ(interval.count(), 2U);
  EXPECT_EQ(interval.overflow, 0U);
  EXPECT_EQ(interval.sum, microseconds(400));
  EXPECT_NEAR(static_cast<double>(interval.min.count()), 100'000, 2'000);
  EXPECT_NEAR(static_cast<double>(interval.max.count()), 300'000, 6'000);
  EXPECT_NEAR(static_cast<double>(interval.percentile(0.5).count()), 100'000, 1'000);

  const HistogramSnapshot last = histogram.snapshot();
  EXPECT_EQ(histogram.snapshot().minus(last).count(), 0U);
  EXPECT_EQ(histogram.snapshot().minus(last).max, Duration::zero());
  histogram.record(hours(3));
  const HistogramSnapshot only_overflow = histogram.snapshot().minus(last);
  EXPECT_EQ(only_overflow.overflow, 1U);
  EXPECT_EQ(only_overflow.percentile(0.5), hours(3));
}

TEST(Histogram, ADistributionIsInSecondsAndHoldsAllSamples) {
  const HistogramSnapshot snapshot =
      snapshot_of({1'000'000, 1'000'000, 2'000'000, 4'000'000'000'000});
  const results::Distribution distribution = to_distribution(snapshot);
  EXPECT_EQ(distribution.count, 4U);
  EXPECT_DOUBLE_EQ(distribution.min, 0.001);
  EXPECT_NEAR(distribution.p50, 0.001, 0.00001);
  EXPECT_DOUBLE_EQ(distribution.max, 4000);
  EXPECT_NEAR(distribution.mean, 1000.001, 1e-9);
  EXPECT_EQ(distribution.overflow, 1U);
  EXPECT_EQ(distribution.relative_error, Layout::kRelativeError);
  ASSERT_EQ(distribution.buckets.size(), 2U);
  EXPECT_EQ(distribution.buckets[0].count, 2U);
  EXPECT_EQ(distribution.buckets[1].count, 1U);
  EXPECT_GE(distribution.buckets[0].upper, 0.001);
  EXPECT_LE(distribution.buckets[0].upper, 0.00102);
}

TEST(ShardedHistogram, TakesMemoryOnlyForWhatWasRecorded) {
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    std::int64_t size = 0, pages = 0;
    file >> size >> pages;
    return pages * sysconf(_SC_PAGESIZE);
  };
  const std::int64_t before = resident();
  std::deque<ShardedHistogram> many;
  for (int i = 0; i < 100; ++i) {
    many.emplace_back(64);
    EXPECT_EQ(many.back().snapshot().count(), 0U);
  }
  // A sanitizer keeps notes of what is read.
  EXPECT_LT(resident() - before, std::int64_t{60} << 20) << "all of them have 120 MB";
  many.front().record(milliseconds(1));
  EXPECT_EQ(many.front().snapshot().count(), 1U);
}

/// With one shard, threads contend that would otherwise use different ones.
class ShardedHistogramTest : public testing::TestWithParam<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Shards, ShardedHistogramTest, testing::Values(1, 2, 3));

TEST_P(ShardedHistogramTest, NothingIsLostBetweenWritersAndAReader) {
  constexpr int kWriters = 4;
  constexpr int kSamples = 300'000;
  ShardedHistogram histogram(GetParam());
  HistogramSnapshot expected;
  for (int i = 0; i < kSamples; ++i) expected.record(nanoseconds(i * 3));

  std::atomic<int> running{kWriters};
  std::latch all_there(kWriters);
  std::vector<std::jthread> writers;
  writers.reserve(kWriters);
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&] {
      all_there.arrive_and_wait();
      for (int i = 0; i < kSamples; ++i) histogram.record(nanoseconds(i * 3));
      running.fetch_sub(1);
    });
  }
  HistogramSnapshot previous = histogram.snapshot();
  while (running.load() > 0) {
    const HistogramSnapshot now = histogram.snapshot();
    for (std::size_t i = 0; i < kHistogramBuckets; ++i) {
      ASSERT_GE(now.buckets[i], previous.buckets[i]) << "a bucket shrank";
    }
    ASSERT_GE(now.sum, previous.sum);
    ASSERT_GE(now.max, previous.max);
    previous = now;
  }
  writers.clear();

  const HistogramSnapshot end = histogram.snapshot();
  EXPECT_EQ(end.count(), std::uint64_t{kWriters} * kSamples);
  EXPECT_EQ(end.sum, expected.sum * kWriters);
  EXPECT_EQ(end.min, expected.min);
  EXPECT_EQ(end.max, expected.max);
  for (std::size_t i = 0; i < kHistogramBuckets; ++i) {
    ASSERT_EQ(end.buckets[i], expected.buckets[i] * kWriters);
  }
}

TEST(Distribution, APercentileThatCensoredSamplesReachIsALowerBound) {
  HistogramSnapshot complete, censored;
  for (int i = 0; i < 900; ++i) complete.record(milliseconds(1));
  for (int i = 0; i < 100; ++i) censored.record(seconds(2));
  const results::Distribution made = to_distribution(complete, censored);
  EXPECT_EQ(made.count, 900U);
  EXPECT_EQ(made.censored.count, 100U);
  EXPECT_NEAR(made.p90, 0.001, 1e-5);
  EXPECT_FALSE(made.is_at_least("p90"));
  EXPECT_NEAR(made.p95, 2, 0.02);
  for (const char* const figure : {"p95", "p99", "p999", "max", "mean"}) {
    EXPECT_TRUE(made.is_at_least(figure)) << figure;
  }
}

TEST(Distribution, AFewThatWereCutOffEarlyDoNotSpoilTheFigures) {
  HistogramSnapshot complete, censored;
  for (int i = 0; i < 1000; ++i) complete.record(milliseconds(10));
  censored.record(milliseconds(3));
  EXPECT_TRUE(to_distribution(complete, censored).at_least.empty());
  // Many censored samples may have had any length.
  for (int i = 0; i < 1000; ++i) censored.record(milliseconds(3));
  EXPECT_TRUE(to_distribution(complete, censored).is_at_least("p99"));
}

TEST(Distribution, TheMeanIsALowerBoundIfMuchOfTheTimeWasCutOff) {
  HistogramSnapshot complete, censored;
  for (int i = 0; i < 100; ++i) complete.record(milliseconds(10));
  complete.record(seconds(3));
  for (int i = 0; i < 100; ++i) censored.record(seconds(2));
  const results::Distribution made = to_distribution(complete, censored);
  EXPECT_TRUE(made.is_at_least("mean"));
  EXPECT_FALSE(made.is_at_least("max")) << "the longest had ended";
}

TEST(Distribution, CensoredSamplesComeBack) {
  HistogramSnapshot complete, censored;
  complete.record(milliseconds(1));
  for (int i = 0; i < 3; ++i) censored.record(seconds(1));
  const results::Distribution made = to_distribution(complete, censored);
  const results::Distribution again =
      to_distribution(to_snapshot(made), to_censored_snapshot(made));
  EXPECT_EQ(again.count, 1U);
  EXPECT_EQ(again.censored.count, 3U);
  EXPECT_EQ(again.at_least, made.at_least);
}

TEST(RecordEvenly, IsAsIfEachButTheShortestWereRecorded) {
  for (const std::uint64_t left_out : {0U, 900U}) {
    ShardedHistogram each(1), together(1);
    for (std::uint64_t k = left_out + 1; k <= 1000; ++k) each.record(milliseconds(k));
    together.record_evenly(seconds(1), 1000, left_out);
    together.record_evenly(seconds(1), left_out, left_out);
    expect_equal(together.snapshot(), each.snapshot());
  }
}

TEST(RecordEvenly, CountsMoreThanCouldBeLoopedOver) {
  constexpr std::uint64_t kSamples = 1'000'000'000'000;
  ShardedHistogram histogram(1);
  histogram.record_evenly(std::chrono::hours(2), kSamples);
  histogram.record_evenly(seconds(1), 0);
  const HistogramSnapshot snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.count(), kSamples);
  EXPECT_NEAR(static_cast<double>(snapshot.overflow), 0.5 * kSamples, 0.01 * kSamples);
  EXPECT_GT(snapshot.sum, Duration::zero());
}

TEST(RecordEvenly, SumsThatDoNotFitStayTheLargest) {
  ShardedHistogram never_begun(1), ranks(1);
  never_begun.record_evenly(std::chrono::hours(1), 10'000'000'000);
  const HistogramSnapshot one = never_begun.snapshot();
  HistogramSnapshot merged;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.add(one);
    merged.merge(one);
  }
  EXPECT_GT(ranks.snapshot().sum, one.sum);
  EXPECT_GT(merged.sum, one.sum);
  const results::Distribution made = to_distribution({}, merged);
  EXPECT_GT(made.mean, 0);
  EXPECT_GT(to_censored_snapshot(made).sum, Duration::zero());
}

TEST(RecordEvenly, SpreadsSamplesFromTheShortestToTheLongest) {
  ShardedHistogram histogram;
  histogram.record_evenly(seconds(2), 1000, 0, seconds(1));
  const HistogramSnapshot found = histogram.snapshot();
  EXPECT_EQ(found.count(), 1000U);
  EXPECT_EQ(found.min, seconds(1) + std::chrono::milliseconds(1));
  EXPECT_EQ(found.max, seconds(2));
  EXPECT_NEAR(lockbench::seconds(found.mean()), 1.5005, 1e-6);
  EXPECT_NEAR(lockbench::seconds(found.percentile(0.1)), 1.1, 0.02);
}

}  // namespace
}  // namespace lockbench::loadgen

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "results/report/curves.h"
#include "results/report/limits.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results::report {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

double value_at(const std::vector<Point>& curve, double x) {
  for (const Point& point : curve) {
    if (point.first >= x) return point.second;
  }
  return NAN;
}

Distribution without_buckets() {
  Distribution condensed = sample_distribution();
  condensed.buckets.clear();
  condensed.censored.buckets.clear();
  return condensed;
}

TEST(PercentileCurve, PassesThroughThePercentilesAndEndsWithTheMaximum) {
  const auto curve = percentile_curve(sample_distribution());
  EXPECT_DOUBLE_EQ(value_at(curve, 2), 8.3e-5);
  EXPECT_DOUBLE_EQ(value_at(curve, 20), 0.00142);
  EXPECT_THAT(curve.back(), Pair(1002, 12.3));
}

TEST(PercentileCurve, OnlyGrows) {
  const auto curve = percentile_curve(sample_distribution());
  for (std::size_t i = 1; i < curve.size(); ++i) {
    EXPECT_GT(curve[i].first, curve[i - 1].first);
    EXPECT_GE(curve[i].second, curve[i - 1].second);
  }
}

TEST(PercentileCurve, OfMoreSamplesThanADoubleTellsApartEnds) {
  const std::uint64_t count = std::uint64_t{1} << 53;
  const Distribution huge{.count = count, .max = 2, .buckets = {{1, count - 1}, {2, 1}}};
  const auto curve = percentile_curve(huge);
  EXPECT_THAT(curve.front(), Pair(1, 1));
  EXPECT_THAT(curve.back(), Pair(static_cast<double>(count), 2));
}

TEST(PercentileCurve, OfNothingIsEmpty) { EXPECT_THAT(percentile_curve({}), IsEmpty()); }

TEST(PercentileCurve, WithoutBucketsGoesThroughThePercentilesThatAreKnown) {
  const Distribution condensed = without_buckets();
  EXPECT_THAT(percentile_curve(condensed),
              ElementsAre(Pair(1, condensed.min), Pair(2, condensed.p50), Pair(10, condensed.p90),
                          Pair(20, condensed.p95), Pair(100, condensed.p99),
                          Pair(1000, condensed.p999), Pair(1002, condensed.max)));
}

TEST(PercentileCurve, OfTheMaximumAloneIsEmpty) {
  Distribution condensed{.count = 10, .p50 = NAN, .max = 1};
  EXPECT_THAT(percentile_curve(condensed), IsEmpty());
}

TEST(PercentileCurve, IsBoundedHoweverFineTheHistogram) {
  Distribution fine;
  for (int i = 1; i <= 100'000; ++i) fine.buckets.push_back({i * 1e-6, 1'000'000});
  fine.count = 100'000'000'000;
  fine.max = 0.1;
  EXPECT_LE(percentile_curve(fine).size(), kMostPoints);
}

TEST(PercentileCurve, ShowsSamplesBeyondTheHistogramAtItsEnd) {
  Distribution overflown{.count = 10, .max = 5000, .buckets = {{0.001, 9}}, .overflow = 1};
  const auto curve = percentile_curve(overflown);
  EXPECT_DOUBLE_EQ(value_at(curve, 5), 0.001);
  EXPECT_THAT(curve.back(), Pair(10, 5000));
}

TEST(Merged, AddsBucketsOfAllRepetitions) {
  const Distribution a{.count = 3, .min = 1, .max = 2, .buckets = {{1, 2}, {2, 1}}};
  const Distribution b{.count = 2, .min = 0.5, .max = 4, .buckets = {{2, 1}, {4, 1}}};
  const std::vector<const Distribution*> both{&a, &b};
  const Distribution sum = merged(both);
  EXPECT_EQ(sum.count, 5);
  EXPECT_EQ(sum.min, 0.5);
  EXPECT_EQ(sum.max, 4);
  ASSERT_THAT(sum.buckets, SizeIs(3));
  EXPECT_EQ(sum.buckets[1].count, 2);
}

TEST(Merged, OfOneKeepsItAll) {
  const Distribution condensed = without_buckets();
  const Distribution nothing;
  const Distribution same = merged(std::vector<const Distribution*>{&nothing, &condensed});
  EXPECT_EQ(same.p50, condensed.p50);
  EXPECT_EQ(same.p999, condensed.p999);
}

TEST(Merged, OfSeveralThinnedOnesHasNoCurve) {
  const Distribution condensed = without_buckets();
  const Distribution whole = sample_distribution();
  for (const Distribution* other : {static_cast<const Distribution*>(&condensed), &whole}) {
    const Distribution sum = merged(std::vector<const Distribution*>{&condensed, other});
    EXPECT_EQ(sum.count, condensed.count + other->count);
    EXPECT_THAT(percentile_curve(sum), IsEmpty());
  }
}

TEST(OverTime, HasARateAndAWorstTimeForEachSecond) {
  const std::vector<SeriesPoint> series{{.t = 1, .sections = 100, .acquire_p99 = 0.1},
                                        {.t = 3, .sections = 100, .acquire_p99 = 0.2}};
  const OverTime lines = over_time(series);
  EXPECT_THAT(lines.rate, ElementsAre(Pair(1, 100), Pair(3, 50)));
  EXPECT_THAT(lines.p99, ElementsAre(Pair(1, 0.1), Pair(3, 0.2)));
}

TEST(OverTime, ASecondWithoutAGrantIsAGap) {
  const std::vector<SeriesPoint> series{{.t = 1, .sections = 100, .acquire_p99 = 0.1},
                                        {.t = 2, .sections = 0, .acquire_p99 = 0},
                                        {.t = 3, .sections = 100, .acquire_p99 = 0.2}};
  const OverTime lines = over_time(series);
  EXPECT_EQ(lines.rate[1], Point(2, 0));
  ASSERT_EQ(lines.p99.size(), 3U);
  EXPECT_TRUE(std::isnan(lines.p99[1].second));
}

TEST(OverTime, ThinsALongRunWithoutLosingAPeak) {
  std::vector<SeriesPoint> series(100'000);
  for (std::size_t i = 0; i < series.size(); ++i) {
    series[i] = {.t = static_cast<double>(i + 1), .sections = 10, .acquire_p99 = 0.001};
  }
  series[77'777].acquire_p99 = 3;
  const OverTime lines = over_time(series);
  EXPECT_LE(lines.rate.size(), kMostPoints + 1);
  for (const Point& point : lines.rate) EXPECT_NEAR(point.second, 10, 1e-6);
  EXPECT_EQ(std::max_element(lines.p99.begin(), lines.p99.end(),
                             [](const Point& a, const Point& b) { return a.second < b.second; })
                ->second,
            3);
}

TEST(OverTime, BelievesInNoTimeThatRunsBackwards) {
  const std::vector<SeriesPoint> series{
      {.t = 2, .sections = 2}, {.t = 1, .sections = 5}, {.t = NAN, .sections = 5}};
  EXPECT_THAT(over_time(series).rate, ElementsAre(Pair(2, 1)));
}

}  // namespace
}  // namespace lockbench::results::report

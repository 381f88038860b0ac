#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "results/report/charts.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
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
  EXPECT_TRUE(std::is_sorted(curve.begin(), curve.end()));
  EXPECT_THAT(percentile_curve({}), IsEmpty());
}

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

TEST(OverTime, HasARateAndAWorstTimeForEachSecond) {
  const std::vector<SeriesPoint> series{{.t = 1, .sections = 100, .acquire_p99 = 0.1},
                                        {.t = 3, .sections = 100, .acquire_p99 = 0.2},
                                        {.t = 4, .sections = 0, .acquire_p99 = 0}};
  const OverTime lines = over_time(series);
  EXPECT_THAT(lines.rate, ElementsAre(Pair(1, 100), Pair(3, 50), Pair(4, 0)));
  EXPECT_THAT(lines.p99, ElementsAre(Pair(1, 0.1), Pair(3, 0.2), Pair(4, testing::IsNan())));
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

Run exclusive_run(const std::string& strategy, const std::string& backend, double rate) {
  Run run = simple_run(strategy);
  run.backend = backend;
  run.sections_per_second = rate;
  run.acquire = sample_distribution();
  run.audit.increments = 1000;
  return run;
}

Chart chart_named(const std::vector<Chart>& charts, const std::string& title) {
  const auto found = std::find_if(charts.begin(), charts.end(),
                                  [&](const Chart& one) { return one.title == title; });
  return found == charts.end() ? Chart{} : *found;
}

TEST(Charts, OfARunShowWhenAFaultStruckAndForHowLong) {
  Result result = minimal_result();
  result.runs = {exclusive_run("a", "redis", 100), exclusive_run("b", "redis", 100)};
  for (auto& run : result.runs) {
    run.faults = {{"store-kill", 2, 3, 1.5, 0.1}, {"partition", 5, std::nullopt, std::nullopt, 0}};
    run.series = {{.t = 1, .warmup = true}, {.t = 2, .sections = 2}};
  }
  const std::vector<Chart> charts = charts_of(result);
  for (const char* title : {"Throughput over time", "Time to acquire over time"}) {
    const Chart chart = chart_named(charts, title);
    EXPECT_THAT(chart.lines, SizeIs(2));
    ASSERT_THAT(chart.marks, SizeIs(3)) << "the same one of several strategies is drawn once";
    EXPECT_EQ(chart.marks[0].from, 2);
    EXPECT_EQ(chart.marks[0].until, 3);
    EXPECT_EQ(chart.marks[1].until, std::nullopt);
    EXPECT_EQ(chart.marks[2].label, "warm-up");
  }
}

TEST(Charts, OfRepetitionsAreThoseOfTheMiddleOne) {
  Result result = minimal_result();
  for (const double rate : {30.0, 10.0, 20.0}) {
    result.runs.push_back(exclusive_run("a", "redis", rate));
  }
  EXPECT_THAT(typical_runs(result), ElementsAre(&result.runs[2]));
  const std::vector<Chart> charts = charts_of(result);
  ASSERT_THAT(charts, SizeIs(1)) << "without a series there is nothing over time";
  EXPECT_THAT(charts[0].note, HasSubstr("the one with the median throughput"));
}

TEST(Charts, ShowAtFirstTheBestLockOfEachStoreWhereThereAreManyAndNoneThatBrokeItsPromise) {
  Result result = minimal_result();
  for (int i = 0; i < 10; ++i) {
    result.runs.push_back(exclusive_run("redis-" + std::to_string(i), "redis", 100 + i));
  }
  result.runs.push_back(exclusive_run("redis-9", "redis", 109));
  result.runs.back().audit.verdict = Verdict::violated;
  result.runs.push_back(exclusive_run("etcd", "etcd", 5));
  std::vector<std::string> shown;
  const std::vector<Chart> charts = charts_of(result);
  for (const Chart::Line& line : charts.at(0).lines) {
    if (line.shown) shown.push_back(line.name);
  }
  EXPECT_THAT(shown, ElementsAre("redis-8", "etcd"));
}

TEST(Charts, AsJsonHoldNothingThatHtmlWouldRead) {
  const std::string hostile = "</script><!--\"'`&amp; \xff\x1b[2J \xe2\x80\xa8";
  const Chart chart{.x = {hostile},
                    .y = {hostile},
                    .lines = {{hostile, {{1, NAN}, {2, 0.123456789}}}},
                    .marks = {{hostile, 1, std::nullopt}}};
  const std::string text = to_json({chart});
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << static_cast<int>(c);
  const auto line = nlohmann::json::parse(text).at(0).at("lines").at(0);
  EXPECT_THAT(line.at("name").get<std::string>(), HasSubstr("</script>"));
  EXPECT_EQ(line.at("points").dump(), "[[1.0,null],[2.0,0.12346]]");
}

TEST(Charts, AreBoundedWhateverTheFileHolds) {
  Result result = minimal_result();
  for (int i = 0; i < 300; ++i) {
    result.runs.push_back(exclusive_run("s" + std::to_string(i), "redis", 1));
    result.runs.back().load.rate = i;
    result.runs.back().faults.assign(100, {std::string(10'000, 'x'), 1.0 * i});
    result.runs.back().series = {{.t = 1}, {.t = 2}};
  }
  for (const Chart& chart : charts_of(result)) {
    EXPECT_LE(chart.lines.size(), kMostStrategies);
    EXPECT_LE(chart.marks.size(), 40U);
  }
  EXPECT_LT(to_json(charts_of(result)).size(), 300'000U);
}

}  // namespace
}  // namespace lockbench::results::report

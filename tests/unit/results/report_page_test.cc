#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "results/report/charts.h"
#include "results/report/report.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile =
    "</script><script>alert(1)</script><img src=x onerror=a()><!--\"'`{{nonce}}${1} &amp; \xff\x1b";

std::string page_of(const Result& result) {
  const Source source{.file = "runs/a.json", .result = result, .flaws = {}};
  return to_page(std::span(&source, 1), "n0nce");
}

std::size_t times(std::string_view page, std::string_view text) {
  std::size_t count = 0;
  for (auto at = page.find(text); at != std::string_view::npos; at = page.find(text, at + 1)) {
    ++count;
  }
  return count;
}

/// The page without scripts and style, which every page has.
std::string body_of(const std::string& page) {
  const auto from = page.find("<main"), until = page.find("</main>");
  return page.substr(from, until - from);
}

/// The result split by kind of figures, since a page shows only the first kind in full.
std::vector<Source> sources_of(const Result& result) {
  Result hazards = result, watch = result, experiment = result, capacity = result,
         simulation = result;
  for (Run& run : experiment.runs) run.load.held_locks = 10;
  for (Result* other : {&hazards, &watch, &capacity, &simulation}) other->runs.clear();
  for (Result* other : {&watch, &capacity, &simulation}) other->hazards.reset();
  simulation.observed.reset();
  capacity.observed.reset();
  std::vector<Source> sources;
  for (const Result& one : {result, hazards, experiment, watch, capacity, simulation}) {
    sources.push_back({.file = one.id, .result = one, .flaws = {}});
  }
  return sources;
}

TEST(Page, NothingInAFileBecomesMarkup) {
  const std::string page = to_page(sources_of(result_of_texts(kHostile)), "n0nce");
  const std::string tame = to_page(sources_of(result_of_texts("tame")), "n0nce");
  for (const char* tag : {"<script", "</script", "<img", "<!--", "<style", "<a ", "<h1", "\x1b"}) {
    EXPECT_EQ(times(page, tag), times(tame, tag)) << tag;
  }
  EXPECT_EQ(times(page, "n0nce"), times(tame, "n0nce")) << "data cannot ask for the nonce";
  EXPECT_THAT(body_of(page), HasSubstr("&#60;script&#62;alert(1)"));
}

TEST(Page, NeedsNoNetworkAndRunsNoScriptButItsOwn) {
  const std::string page = page_of(full_result());
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'nonce-n0nce'"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe")));
  EXPECT_EQ(times(page, "<script"), times(page, "<script nonce=\"n0nce\"") + 1) << "and the data";
  for (const char* outside : {"<link", "<iframe", " src=", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  for (const char* place : {"{{nonce}}", "{{body}}", "{{charts}}", "{{title}}", "{{page.css}}"}) {
    EXPECT_THAT(page, Not(HasSubstr(place)));
  }
}

TEST(Page, CanBeReadWithoutItsScripts) {
  const std::string body = body_of(page_of(full_result()));
  EXPECT_THAT(body, HasSubstr("violated exclusion: redis-set-nx: lost updates 12"));
  EXPECT_THAT(body, HasSubstr("<td class=\"bad\">violated</td>"));
  EXPECT_THAT(body,
              AllOf(HasSubstr("<th scope=\"row\">redis-set-nx</th>"),
                    HasSubstr("All figures of each strategy"), HasSubstr("bytes_per_section")));
  EXPECT_THAT(body, HasSubstr("asks for the lock")) << "of a play";
}

TEST(Page, ShowsWhatAWatchSaw) {
  const std::string body = body_of(to_page(sources_of(full_result()), "n"));
  EXPECT_THAT(body, AllOf(HasSubstr("The locks that hurt most"), HasSubstr("How it was seen")));
  Result empty = minimal_result();
  empty.observed.emplace();
  EXPECT_THAT(page_of(empty), HasSubstr("no locks were seen"));
}

TEST(Page, OfSeveralResultsLinksToEach) {
  Result result = minimal_result();
  result.runs = {simple_run("x")};
  const std::string page =
      to_page(std::vector<Source>{{"1/a.json", result, {}}, {"2/a.json", result, {}}}, "n");
  EXPECT_THAT(page, AllOf(HasSubstr("<a href=\"#part0\">1/a.json</a>"),
                          HasSubstr("<a href=\"#part1\">2/a.json</a>"), HasSubstr("\"part1\"")));
}

TEST(Page, TellsHowToRepeatItInOneHarmlessLineWhateverTheFileHolds) {
  Result result = minimal_result();
  EXPECT_THAT(page_of(result), Not(HasSubstr("The command to repeat it")));
  result.command = {"run", "redis-*", "a'; rm -rf /\n#", "$(reboot)", "--hold", "2ms"};
  EXPECT_THAT(page_of(result),
              HasSubstr(">lockbench run &#39;redis-*&#39; &#39;a&#39;\\&#39;&#39;; rm -rf / #&#39; "
                        "&#39;$(reboot)&#39; --hold 2ms</pre>"));
}

/// A lock that is full from 200/s on.
Result swept_result() {
  Result result = minimal_result();
  result.workload["rate"] = std::vector<std::string>{"200", "100"};
  for (const double rate : {200.0, 100.0}) {
    Run& run = result.runs.emplace_back(simple_run("redis-queue"));
    run.load = {.name = "demand", .clients = 32, .hold_seconds = 0.008, .rate = rate};
    run.sections = run.outcomes.acquired = 1000;
    run.sections_per_second = std::min(rate, 120.0);
    run.lock_taken = rate == 200 ? 1 : 0.8;
    run.acquire = sample_distribution();
    run.acquire.p99 = rate == 200 ? 2 : 0.05;
  }
  return result;
}

TEST(Page, OfASweepHasOneTableAndTheCurveOfItsP99) {
  const std::string page = page_of(swept_result());
  EXPECT_EQ(times(page, "<canvas"), 2U);
  EXPECT_THAT(page, HasSubstr("demand: Time to acquire by rate"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"col\">lock taken</th>"));
  const auto charts = sweep_charts(swept_result());
  ASSERT_EQ(charts.size(), 2U);
  ASSERT_EQ(charts[0].lines.size(), 1U);
  EXPECT_THAT(charts[0].lines[0].points, testing::ElementsAre(Point(100, 0.05), Point(200, 2)));
  EXPECT_THAT(charts[1].lines[0].points, testing::ElementsAre(Point(100, 100), Point(200, 120)));
}

TEST(Page, OfASweepOfSimulationsHasItsCurves) {
  Result result = minimal_result();
  result.simulation = sample_simulation();
  for (const double ttl : {10.0, 1.0}) {
    Simulation& one = result.simulation->emplace_back(sample_simulation().front());
    one.swept =
        SweptValue{.option = "ttl", .value = fmt::format("{}s", ttl), .seconds = ttl, .number = {}};
    one.per_million = {.value = 6 / ttl, .low = 5 / ttl, .high = 7 / ttl};
    one.availability = 1 - ttl / 1000;
  }
  const auto charts = sweep_charts(*result.simulation);
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_TRUE(charts[0].x.seconds);
  ASSERT_EQ(charts[0].lines.size(), 1U);
  EXPECT_THAT(charts[0].lines[0].points,
              testing::ElementsAre(Point(1, 6), Point(3, 6), Point(10, 0.6)));
  EXPECT_NEAR(charts[1].lines[0].points[2].second, 1, 1e-9);
  const std::string page = page_of(result);
  EXPECT_THAT(page, HasSubstr("Grants to two holders by ttl"));
  EXPECT_THAT(page, HasSubstr("ttl 10s"));
  EXPECT_THAT(page, HasSubstr("fewest grants to two holders with ttl 10s:"));
  EXPECT_THAT(page, HasSubstr("least unavailable with ttl 3s:"));
  for (Simulation& one : *result.simulation) {
    one.per_million.low = 0;
    one.availability = 1;
  }
  EXPECT_THAT(page_of(result), HasSubstr("no value is shown to have fewer grants to two holders"));
  EXPECT_THAT(page_of(result), Not(HasSubstr("least unavailable")));
  result.simulation->front().swept.reset();
  result.simulation->resize(1);
  EXPECT_THAT(page_of(result), Not(HasSubstr("<canvas")));
}

TEST(Page, StaysLightWhateverTheFileHolds) {
  Result plays = minimal_result(), runs = minimal_result();
  plays.hazards.emplace();
  for (int i = 0; i < 3500; ++i) {
    Hazard hazard = sample_hazards().front();
    hazard.scenario = fmt::format("scenario-{}", i % 100);
    hazard.strategy = fmt::format("strategy-{}", i / 100);
    hazard.timeline.assign(100, {1, "somebody", std::string(60, 'x')});
    plays.hazards->push_back(hazard);
  }
  for (int i = 0; i < 500; ++i) {
    runs.runs.push_back(simple_run(fmt::format("s{}", i)));
    runs.runs.back().errors = {std::string(1'000'000, 'x')};
  }
  const std::vector<Source> sources{{"a", plays, {}}, {"b", runs, {}}};
  const std::string page = to_page(sources, "n");
  EXPECT_LT(page.size(), 6'000'000U);
  EXPECT_THAT(page, HasSubstr("without their timeline"));
  EXPECT_THAT(page, HasSubstr("100 more rows are in the file"));
}

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

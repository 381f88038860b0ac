#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "results/report/report.h"
#include "tests/unit/results/report_fixture.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results::report {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

std::vector<std::string> titles(const Part& part) {
  std::vector<std::string> titles;
  for (const Section& section : part.sections) titles.push_back(section.title);
  return titles;
}

TEST(ReportView, SaysFirstWhatBroke) {
  Result result = minimal_result();
  result.runs = {exclusive_run("good", "redis", 100), full_run()};
  result.runs[1].load = result.runs[0].load;
  const Part part = part_of(result);
  EXPECT_THAT(part.headline.front().text,
              "redis-set-nx violated exclusion: 12 lost updates, 3 overlaps of two holders "
              "and 1 fencing number that did not increase.");
  EXPECT_EQ(part.headline.front().tone, Tone::bad);
  EXPECT_THAT(part.headline, says(Tone::good, "1 of 2 strategies kept exclusion"));
  EXPECT_THAT(part.headline, says(Tone::doubtful, "1 of 2 runs are invalid"));
}

TEST(ReportView, PraisesNoLockThatBrokeItsPromiseInOneRepetition) {
  Result result = minimal_result();
  for (const double rate : {900.0, 1000.0, 1100.0}) {
    result.runs.push_back(exclusive_run("fast", "redis", rate));
  }
  result.runs.front().audit.lost_updates = 5;
  result.runs.front().audit.verdict = Verdict::violated;
  result.runs.push_back(exclusive_run("a", "redis", 100));
  result.runs.push_back(exclusive_run("b", "etcd", 50));
  const Part part = part_of(result);
  EXPECT_THAT(part.headline, says(Tone::bad, "fast violated exclusion: 5 lost updates."));
  EXPECT_THAT(part.headline, says(Tone::plain, "Highest throughput: a with 100 sections"));
}

TEST(ReportView, ShowsAtFirstNoLockThatBrokeItsPromiseInOneRepetition) {
  Result result = minimal_result();
  for (int i = 0; i < 10; ++i) {
    result.runs.push_back(exclusive_run("redis-" + std::to_string(i), "redis", 100 + i));
    result.runs.push_back(exclusive_run("redis-" + std::to_string(i), "redis", 100 + i));
  }
  result.runs[18].audit.verdict = Verdict::violated;
  EXPECT_THAT(part_of(result).strategies.front(), Field(&Picked::strategy, "redis-8"));
}

TEST(ReportView, SaysWhetherThroughputCameBackAfterAFault) {
  Result result = minimal_result();
  auto run = exclusive_run("a", "redis", 100);
  run.faults = {{"store-kill", 2, 3, 1.5, 0.1},
                {"partition", 5, std::nullopt, std::nullopt, 0},
                {"pause", 6, std::nullopt, std::nullopt, NAN}};
  run.series = {{.t = 1, .sections = 1}, {.t = 2, .sections = 2}};
  result.runs = {run};
  const Part part = part_of(result);
  EXPECT_THAT(part.headline, says(Tone::plain, "store-kill: "));
  EXPECT_THAT(part.headline, says(Tone::bad, "partition: "));
  EXPECT_THAT(part.headline, says(Tone::plain, "pause: "));
  const auto* chart = find_block<LineChart>(part, "Throughput over time");
  ASSERT_NE(chart, nullptr);
  ASSERT_EQ(chart->marks.size(), 3U);
  EXPECT_EQ(chart->marks[0].from, 2);
  EXPECT_EQ(chart->marks[0].until, 3);
  EXPECT_EQ(chart->marks[1].until, std::nullopt);
  EXPECT_NE(find_block<Table>(part, "Faults during the run"), nullptr);
}

TEST(ReportView, ShowsAtFirstTheBestLockOfEachStoreWhereThereAreMany) {
  Result result = minimal_result();
  for (int i = 0; i < 10; ++i) {
    result.runs.push_back(exclusive_run("redis-" + std::to_string(i), "redis", 100 + i));
  }
  result.runs.push_back(exclusive_run("etcd", "etcd", 5));
  std::vector<std::string> shown;
  for (const Picked& picked : part_of(result).strategies) {
    if (picked.shown) shown.push_back(picked.strategy);
  }
  EXPECT_THAT(shown, ElementsAre("etcd", "redis-9"));
}

TEST(ReportView, HasEachStrategyInEveryChartOfRuns) {
  Result result = minimal_result();
  result.runs = {exclusive_run("slow", "redis", 10), exclusive_run("fast", "redis", 20)};
  const Part part = part_of(result);
  const auto* bars = find_block<BarChart>(part, "Throughput");
  ASSERT_NE(bars, nullptr);
  EXPECT_THAT(bars->categories, ElementsAre("fast", "slow"));
  EXPECT_THAT(bars->series.front().values, ElementsAre(20, 10));
  const auto* curves = find_block<LineChart>(part, "Time to acquire by percentile");
  ASSERT_NE(curves, nullptr);
  EXPECT_EQ(curves->lines.size(), 2U);
  EXPECT_EQ(curves->table.rows.size(), 2U);
}

TEST(ReportView, TheWaitIsTakenApartInShares) {
  Result result = minimal_result();
  auto run = exclusive_run("a", "redis", 10);
  run.wait = {0.001, 0.003, 0};
  result.runs = {run};
  const Part part = part_of(result);
  const auto* wait = find_block<BarChart>(part, "Parts of the wait");
  ASSERT_NE(wait, nullptr);
  EXPECT_THAT(wait->categories, ElementsAre("a · 4 ms"));
  EXPECT_DOUBLE_EQ(wait->series[0].values[0], 0.25);
  EXPECT_DOUBLE_EQ(wait->series[1].values[0], 0.75);
}

TEST(ReportView, HazardsBecomeAMatrixWithEveryPlay) {
  Result result = minimal_result();
  result.hazards = sample_hazards();
  const Part part = part_of(result);
  const HazardMatrix* matrix = nullptr;
  for (const Block& block : part.sections.front().blocks) {
    if (const auto* found = std::get_if<HazardMatrix>(&block)) matrix = found;
  }
  ASSERT_NE(matrix, nullptr);
  ASSERT_EQ(matrix->plays.size(), 1U);
  EXPECT_EQ(matrix->plays[0].word, "safe!");
  EXPECT_EQ(matrix->plays[0].reason, "the \"second\" still held its lock afterwards");
  EXPECT_EQ(matrix->plays[0].timeline.size(), 1U);
  EXPECT_THAT(part.headline, says(Tone::bad, "1 outcome differs from what the strategy declares"));
}

TEST(ReportView, PraisesNoControlThatFewFaultsConcern) {
  Result result = minimal_result();
  auto& plays = result.hazards.emplace();
  const auto play = [&](const std::string& scenario, const std::string& strategy,
                        const std::string& outcome) {
    plays.push_back({.scenario = scenario, .strategy = strategy, .observed = outcome});
  };
  for (const char* scenario : {"a", "b", "c", "d"}) {
    play(scenario, "sturdy", *scenario == 'a' || *scenario == 'b' ? "lost-update" : "safe");
    play(scenario, "frail", *scenario == 'd' ? "safe" : "lost-update");
    play(scenario, "control", *scenario == 'a' ? "lost-update" : "not-applicable");
  }
  EXPECT_THAT(part_of(result).headline, says(Tone::plain, "Fewest harmful plays, 2: sturdy."));
}

TEST(ReportView, ARefusalIsNoHarmAndIsSaid) {
  Result result = minimal_result();
  result.hazards = {{.scenario = "failover", .strategy = "x", .observed = "refused"},
                    {.scenario = "failover", .strategy = "y", .observed = "double-grant"}};
  const Part part = part_of(result);
  EXPECT_THAT(part.headline, says(Tone::bad, "1 of 2 plays ended in harm"));
  EXPECT_THAT(part.headline,
              says(Tone::plain, "1 ended with a refused lock rather than a doubtful one"));
  EXPECT_THAT(part.headline, says(Tone::plain, "Fewest harmful plays, 0: x"));
}

TEST(ReportView, EveryKindOfResultHasItsSections) {
  Result result = full_result();
  result.experiment = Experiment{.points = std::vector<QuorumPoint>{sample_quorum_point()}};
  EXPECT_THAT(titles(part_of(result)),
              ElementsAre("What breaks which lock", "What the watch saw", "Capacity",
                          "Capacity of redis-queue", "The cost of a quorum", "Strategies",
                          "Percentiles", "Over time", "Anatomy of the wait", "Handoff and fairness",
                          "Renewal, votes and replicas", "How it was made"));
}

TEST(ReportView, CapacityIsShownWithItsClosedLoops) {
  const Part part = part_of(full_result());
  EXPECT_THAT(part.headline,
              says(Tone::good,
                   "redis-queue keeps acquire.p99<20ms up to 400 sections a second and "
                   "misses it from 420"));
  const auto* chart = find_block<LineChart>(part, "Throughput by keys");
  ASSERT_NE(chart, nullptr);
  EXPECT_THAT(chart->lines.front().points, ElementsAre(Point(2, 800)));
}

TEST(ReportView, PraisesNoCapacityOfALockThatBrokeItsPromise) {
  Result result = minimal_result();
  result.capacity = sample_capacity();
  result.capacity->front().violated = true;
  const Part part = part_of(result);
  EXPECT_THAT(part.headline, ElementsAre(Field(&Remark::tone, Tone::bad)));
  EXPECT_THAT(part.headline, says(Tone::bad, "redis-queue violated exclusion"));
  const auto& said = std::get<Remarks>(part.sections.at(1).blocks.front());
  EXPECT_THAT(said, says(Tone::bad, "exclusion was violated"));
}

TEST(ReportView, SaysFirstAtWhichPointAQuorumBroke) {
  Result result = minimal_result();
  std::vector<QuorumPoint> points(3, sample_quorum_point());
  points[0].violated = std::nullopt;
  points[2].violated = true;
  result.experiment = Experiment{.points = points};
  const Part part = part_of(result);
  EXPECT_EQ(part.headline.front().tone, Tone::bad);
  EXPECT_THAT(part.headline.front().text,
              testing::StartsWith("redlock on 5 nodes, 8 clients, with 1 of 5 nodes down"));
  EXPECT_EQ(std::count_if(part.headline.begin(), part.headline.end(),
                          [](const Remark& remark) { return remark.tone == Tone::bad; }),
            1);
}

TEST(ReportView, AnEmptyResultSaysSo) {
  const Part part = part_of(minimal_result());
  EXPECT_THAT(part.headline, says(Tone::doubtful, "The file contains no measurements."));
  EXPECT_THAT(titles(part), ElementsAre("How it was made"));
}

TEST(ReportView, SeveralResultsStandSideBySide) {
  Result a = minimal_result(), b = minimal_result();
  a.runs = {exclusive_run("x", "redis", 10), exclusive_run("only-a", "redis", 10)};
  b.runs = {exclusive_run("x", "redis", 30)};
  b.environment.cpu = "another";
  const std::vector<Source> sources{{"1/a.json", a, {}}, {"2/b.json", b, {}}};
  const View view = make_view(sources);
  ASSERT_EQ(view.overview.size(), 1U);
  EXPECT_THAT(std::get<Remarks>(view.overview[0].blocks[0]),
              says(Tone::doubtful, "a.json and b.json differ in"));
  const auto& chart = std::get<BarChart>(view.overview[0].blocks[1]);
  EXPECT_THAT(chart.categories, ElementsAre("x"));
  EXPECT_THAT(chart.series[1].values, ElementsAre(30));
}

TEST(ReportView, ResultsWithNothingInCommonHaveNoOverview) {
  Result a = minimal_result(), b = minimal_result();
  a.runs = {exclusive_run("x", "redis", 10)};
  const std::vector<Source> sources{{"a.json", a, {}}, {"b.json", b, {}}};
  EXPECT_THAT(make_view(sources).overview, IsEmpty());
}

TEST(ReportView, SaysHowManyLoadsItLeavesOut) {
  Result result = minimal_result();
  for (int i = 0; i < static_cast<int>(kMostFiles) + 2; ++i) {
    auto run = exclusive_run("x", "redis", 10);
    run.load = Load{.name = "demand", .clients = 8, .rate = 1.0 + i};
    result.runs.push_back(run);
  }
  EXPECT_THAT(part_of(result).headline, says(Tone::doubtful, "2 more results or loads"));
}

TEST(ReportView, OfNoFileOrTooManyIsAMistake) {
  EXPECT_THROW(make_view({}), std::invalid_argument);
  EXPECT_THROW(make_view(std::vector<Source>(kMostFiles + 1)), std::invalid_argument);
}

TEST(ReportView, TellsHowToRepeatItInOneHarmlessLineWhateverTheFileHolds) {
  Result result = minimal_result();
  const Part silent = part_of(result);
  EXPECT_FALSE(std::holds_alternative<Code>(silent.sections.back().blocks.front()));
  result.command = {"run", "redis-*", "a'; rm -rf /\n#", "$(reboot)", "--hold", "2ms"};
  const Part part = part_of(result);
  EXPECT_EQ(std::get<Code>(part.sections.back().blocks.front()).text,
            "lockbench run 'redis-*' 'a'\\''; rm -rf / #' '$(reboot)' --hold 2ms");
}

TEST(ReportView, ListsTheSettingsButNotWhereOutputWent) {
  Result result = full_result();
  result.workload["out"] = "/home/somebody/result.json";
  const Part part = part_of(result);
  const auto* settings = find_block<Table>(part, "All settings (durations in seconds)");
  ASSERT_NE(settings, nullptr);
  const auto names = [&](std::string_view option) {
    return std::any_of(settings->rows.begin(), settings->rows.end(),
                       [&](const auto& row) { return row.front().text == option; });
  };
  EXPECT_TRUE(names("hold"));
  EXPECT_FALSE(names("out"));
}

}  // namespace
}  // namespace lockbench::results::report

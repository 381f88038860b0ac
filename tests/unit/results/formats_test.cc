#include "results/tables/formats.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "results/stats/figures.h"
#include "results/tables/hazards.h"
#include "results/tables/runs.h"
#include "results/tables/show.h"
#include "tests/unit/results/samples.h"
#include "tests/unit/results/table_lines.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string csv_of(const Result& result) { return *render(result, {}, {.format = Format::csv}); }

TEST(Columns, HaveKeysOnceAndUnitsInTheirNames) {
  for (const Table& table : {run_table(full_result(), {}), capacity_table(sample_capacity())}) {
    std::set<std::string> keys;
    for (const Column& column : table.columns) {
      EXPECT_TRUE(keys.insert(column.key).second) << column.key;
      EXPECT_TRUE(column.unit != Unit::seconds || column.key.ends_with("_seconds")) << column.key;
    }
  }
}

TEST(Columns, CanBeChosen) {
  const Look look{.format = Format::csv, .columns = {"verdict", "strategy"}};
  EXPECT_THAT(*render(full_result(), {}, look),
              testing::StartsWith("verdict,strategy\r\nviolated,redis-set-nx\r\n"));
  EXPECT_THAT(*render(full_result(), {}, {.columns = {"strategy", "acquired"}}),
              testing::StartsWith("strategy      acquired\n"));
  EXPECT_THAT(*render(full_result(), {}, {.columns = {"all"}}), HasSubstr("bytes_per_section"));
}

TEST(Columns, UnknownOnesAreRefusedAlsoBeforeThereAreRuns) {
  for (const Result& result : {full_result(), minimal_result()}) {
    const auto text = render(result, {}, {.columns = {"strategy", "p99"}});
    ASSERT_FALSE(text);
    EXPECT_THAT(text.error(), AllOf(HasSubstr("no column \"p99\""), HasSubstr("verdict")));
  }
  EXPECT_FALSE(render(full_result(), {}, {.format = Format::json, .columns = {"strategy"}}));
}

TEST(Columns, OfAMatrixAreThoseOfItsCells) {
  Result result = minimal_result();
  result.hazards = sample_hazards();
  EXPECT_THAT(*render(result, {}, {.columns = {"strategy", "observed"}}),
              testing::StartsWith("strategy      observed\nredis-set-nx  safe\n"));
}

TEST(Csv, OfCapacityHasTheAnswer) {
  Result result = minimal_result();
  result.capacity = sample_capacity();
  const auto csv = [&](const std::vector<std::string>& columns) {
    return render(result, {}, {.format = Format::csv, .columns = columns});
  };
  EXPECT_EQ(lines_of(*csv({})).size(), 2U);
  EXPECT_EQ(*csv({"strategy", "highest_kept_per_second", "lowest_missed_per_second", "limit"}),
            "strategy,highest_kept_per_second,lowest_missed_per_second,limit\r\n"
            "redis-queue,400,420,lock\r\n");
  EXPECT_THAT(csv({"x"}).error(), HasSubstr("headroom"));
}

TEST(Csv, HasOneRowARunInBaseUnits) {
  Result result = full_result();
  const std::string text = csv_of(result);
  const auto lines = lines_of(text);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(
      lines[0].starts_with("strategy,backend,repetition,load,clients,hold_mean_seconds,"
                           "rate,rtt_seconds,duration_seconds,sections,"));
  EXPECT_THAT(lines[0], AllOf(HasSubstr("acquire_p99_seconds"), HasSubstr("granted_share")));
  EXPECT_TRUE(
      lines[1].starts_with("redis-set-nx,redis,2,demand,32,0.002,350,0.001,3.01,124000,12.3,"))
      << lines[1];
  EXPECT_TRUE(lines[2].starts_with("none,redis,1,demand,32,0.002,350,0.001,0,0,0,,0,,,,"))
      << lines[2];
  for (const std::string& line : {lines[0], lines[2]}) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(lines[0].begin(), lines[0].end(), ','));
    EXPECT_TRUE(line.ends_with('\r'));
  }
}

TEST(Csv, QuotesWhatNeedsIt) {
  Result result = minimal_result();
  result.runs = {simple_run("none")};
  result.runs[0].generator = {.valid = false, .reasons = {"said \"no\", twice", "two\nlines"}};
  EXPECT_THAT(csv_of(result), HasSubstr(",\"said \"\"no\"\", twice; two\nlines\""));
}

TEST(Markdown, IsATableWithItsNotes) {
  Result result = full_result();
  result.runs[0].errors = {"a | b"};
  const std::string text =
      *render(result, {{"redis-set-nx", {"pause|crash"}}}, {.format = Format::markdown});
  const auto lines = lines_of(text);
  EXPECT_THAT(lines.at(0),
              AllOf(testing::StartsWith("| strategy | longest wait | worst client p99 |")));
  EXPECT_THAT(lines.at(1), testing::StartsWith("|---|---:|"));
  EXPECT_THAT(lines.at(2), AllOf(HasSubstr("| redis-set-nx |"), HasSubstr("pause\\|crash"),
                                 HasSubstr("| 12–15 |")));
  EXPECT_THAT(lines.at(0),
              AllOf(HasSubstr("| cmds/sect. | fairness |"), HasSubstr("| lost updates |")));
  EXPECT_THAT(text, HasSubstr("- interrupted"));
  EXPECT_THAT(text, HasSubstr("a \\| b"));
}

/// 900 samples about 10 µs, 99 about 1 ms, the largest 1.1 ms.
Distribution sample() {
  return {.count = 1000,
          .mean = 0.11e-3,
          .stddev = 0.3e-3,
          .min = 9e-6,
          .max = 1.1e-3,
          .relative_error = 1.0 / 128,
          .buckets = {{1e-7, 3}, {10.111e-6, 897}, {1.015807e-3, 98}, {1.11411e-3, 2}}};
}

TEST(Hgrm, HasTheLayoutOfHdrHistogramsTools) {
  const std::string text = to_hgrm(sample());
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "       Value     Percentile TotalCount 1/(1-Percentile)");
  std::getline(lines, line);
  EXPECT_EQ(line, "");
  std::getline(lines, line);
  EXPECT_EQ(line, "       0.100 0.000000000000          3           1.00");
  EXPECT_THAT(text, HasSubstr("      10.111 0.500000000000        900           2.00\n"));
  EXPECT_THAT(text, HasSubstr("\n    1100.000 1.000000000000       1000\n"
                              "#[Mean    =      110.000, StdDeviation   =      300.000]\n"
                              "#[Max     =     1100.000, Total count    =         1000]\n"));
}

TEST(Hgrm, HasWhatWasCutOffToo) {
  Distribution distribution{.count = 9, .max = 5, .buckets = {{1, 9}}};
  distribution.censored = {.count = 1, .buckets = {{5, 1}}};
  const std::string text = to_hgrm(distribution);
  EXPECT_THAT(text, HasSubstr("Total count    =           10]"));
  EXPECT_THAT(text, HasSubstr(" 0.900000000000          9"));
}

TEST(PercentileSteps, AreFiveForEachHalvingOfTheDistance) {
  const Distribution even{
      .count = 100, .max = 2, .buckets = {{0.1, 50}, {1, 40}, {1.5, 8}, {2, 2}}};
  std::vector<double> percents;
  for (const PercentileStep& step : percentile_steps(even)) percents.push_back(step.percent);
  EXPECT_THAT(percents,
              testing::ElementsAre(0, 10, 20, 30, 40, 50, 55, 60, 65, 70, 75, 77.5, 80, 82.5, 85,
                                   87.5, 88.75, 90, 91.25, 92.5, 93.75, 94.375, 95, 95.625, 96.25,
                                   96.875, 97.1875, 97.5, 97.8125, 98.125));
  EXPECT_EQ(percentile_steps(even).front().value, 0.1);
  EXPECT_EQ(percentile_steps(even).back().samples, 100U);
}

}  // namespace
}  // namespace lockbench::results
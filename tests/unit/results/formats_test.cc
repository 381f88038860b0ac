#include "results/tables/formats.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
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
  EXPECT_THAT(*render(full_result(), {}, {.columns = {"all"}}), HasSubstr("granted_share"));
}

TEST(Columns, ChosenOnesAreNeverLeftOut) {
  const std::string text =
      *render(full_result(), {}, {.style = {.width = 20}, .columns = {"strategy", "verdict"}});
  EXPECT_THAT(text, HasSubstr("violated"));
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

TEST(Csv, WhatIsNotANumberIsEmpty) {
  Result result = minimal_result();
  result.runs = {run_at(std::numeric_limits<double>::quiet_NaN(), 1)};
  EXPECT_THAT(csv_of(result), HasSubstr("redlock,redis,1,,0,0,,0,0,0,0,,,,8.3e-05"));
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

}  // namespace
}  // namespace lockbench::results
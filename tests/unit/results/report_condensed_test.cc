#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "results/tables/units.h"
#include "tests/unit/results/report_fixture.h"
#include "tests/unit/results/table_lines.h"

namespace lockbench::results::report {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

using nlohmann::json;

void thin_out(json& value) {
  if (!value.is_structured()) return;
  for (const char* bulk : {"buckets", "series", "timeline"}) {
    if (value.is_object() && value.contains(bulk)) value[bulk] = json::array();
  }
  for (json& part : value) thin_out(part);
}

/// What a report finds left of it in a file of scripts/condense.py.
Result thinned(const Result& result) {
  json document = json::parse(to_json(result));
  thin_out(document);
  const auto read = from_json(document.dump());
  EXPECT_TRUE(read) << read.error();
  return read.value_or(Result{});
}

TEST(ReportOfThinned, SaysOfPercentilesWhatTheFileSays) {
  Result result = minimal_result();
  result.runs = {exclusive_run("a", "redis", 100)};
  result.runs[0].acquire.count = 20'000;
  const Part part = part_of(thinned(result));
  const auto* chart = find_block<LineChart>(part, "Time to acquire by percentile");
  ASSERT_NE(chart, nullptr);
  ASSERT_THAT(chart->table.rows, SizeIs(1));
  EXPECT_THAT(texts_of(chart->table.rows[0]),
              ElementsAre("a", "83 µs", "400 µs", "1.42 ms", "≥ 3 ms", "–", "–", "≥ 12.3 s"))
      << "p50, p90, p99, p99.9, p99.99, p99.999 and the maximum";
  ASSERT_THAT(chart->lines, SizeIs(1));
  EXPECT_THAT(chart->lines[0].points, SizeIs(7));
}

TEST(ReportOfThinned, InventsNoPercentilesOfSeveralRepetitions) {
  Result result = minimal_result();
  result.runs = {exclusive_run("a", "redis", 100), exclusive_run("a", "redis", 110)};
  const Part repeated = part_of(thinned(result));
  const auto* table = find_block<Table>(repeated, "Time to acquire by percentile");
  ASSERT_NE(table, nullptr) << "a chart without lines";
  EXPECT_THAT(texts_of(table->rows.at(0)),
              ElementsAre("a", "–", "–", "–", "–", "–", "–", "≥ 12.3 s"));

  result.runs.push_back(exclusive_run("b", "redis", 90));
  const Part part = part_of(thinned(result));
  const auto* chart = find_block<LineChart>(part, "Time to acquire by percentile");
  ASSERT_NE(chart, nullptr);
  EXPECT_THAT(chart->lines, ElementsAre(Field(&Line::name, "b")));
  EXPECT_THAT(chart->note, HasSubstr("One line cannot be drawn"));
}

TEST(ReportOfThinned, HasNoEmptySections) {
  const Part part = part_of(thinned(full_result()));
  for (const Section& section : part.sections) {
    EXPECT_THAT(section.blocks, Not(IsEmpty())) << section.title;
  }
  EXPECT_EQ(find_block<LineChart>(part, "Throughput over time"), nullptr);
}

}  // namespace
}  // namespace lockbench::results::report

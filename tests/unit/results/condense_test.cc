#include "results/file/condense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/file/json.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Condensed, LeavesOutHistogramsSeriesAndTimelines) {
  const Result condensed = thinned(full_result());
  for (const results::Run& run : condensed.runs) {
    EXPECT_THAT(run.acquire.buckets, IsEmpty());
    EXPECT_THAT(run.series, IsEmpty());
  }
  for (const Hazard& hazard : *condensed.hazards) EXPECT_THAT(hazard.timeline, IsEmpty());
}

TEST(Condensed, KeepsOfRepetitionsWhatIsAddedUpOrTheMedianOf) {
  Result result = full_result();
  auto& second = result.runs.emplace_back(result.runs[0]);
  second.repetition = 2;
  second.overtakings = 7;
  second.wait.backoff_seconds = 0.25;
  const auto condensed = thinned(result).runs.back();
  EXPECT_EQ(condensed.overtakings, 7U);
  EXPECT_EQ(condensed.outcomes.acquired, second.outcomes.acquired);
  EXPECT_EQ(condensed.wait.backoff_seconds, 0.25);
}

TEST(Condensed, KeepsFiguresToFourDigits) {
  Result result = full_result();
  result.runs[0].acquire.p50 = 8.34567e-5;
  result.runs[0].sections_per_second = 1234567.8;
  const Result condensed = thinned(result);
  EXPECT_DOUBLE_EQ(condensed.runs[0].acquire.p50, 8.346e-5);
  EXPECT_DOUBLE_EQ(condensed.runs[0].sections_per_second, 1235000);
  EXPECT_DOUBLE_EQ(condensed.runs[0].acquire.p99, 0.00142);
  EXPECT_EQ(condensed.runs[0].sections, result.runs[0].sections);
  EXPECT_THAT(to_json(condensed), HasSubstr("8.346e-05"));
}

TEST(Condensed, KeepsTheWorkloadButNotWhereItWasWrittenTo) {
  Result result = full_result();
  const Result asked_for = thinned(result);
  EXPECT_THAT(asked_for.workload, Not(IsEmpty()));
  result.workload["out"] = "/home/somebody/result.json";
  EXPECT_EQ(thinned(result).workload, asked_for.workload);
}

TEST(Condensed, KeepsWhatAPlaySaid) {
  Result result = full_result();
  result.hazards->push_back(result.hazards->front());
  result.hazards->back().observed = "not-applicable";
  const Result condensed = thinned(result);
  EXPECT_EQ(condensed.hazards->front().evidence.size(), 1U);
  EXPECT_TRUE(condensed.hazards->front().evidence.contains("reason"));
  EXPECT_EQ(condensed.hazards->back().evidence.size(), 1U);
  EXPECT_TRUE(condensed.hazards->back().evidence.contains("reason")) << "why it is not applicable";
}

TEST(Condensed, StandsOnFewLinesAndIsReadAsItIs) {
  const std::string text = condensed(full_result());
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 45);
  EXPECT_THAT(text, Not(HasSubstr("asks for the lock"))) << "of a timeline";
  EXPECT_EQ(condensed(thinned(full_result())), text);
}

TEST(Condensed, LeavesOutOfRunsOnlyWhatAnEmptyRunHas) {
  Result result = minimal_result();
  result.runs = {simple_run("a"), simple_run("b")};
  result.runs[1].leases_lost = 3;
  EXPECT_EQ(to_json(thinned(result)), to_json(result));
}

}  // namespace
}  // namespace lockbench::results

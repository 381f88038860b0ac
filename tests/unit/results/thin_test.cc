#include "results/file/thin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/file/json.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Thinned, LeavesOutHistogramsSeriesAndTimelines) {
  const Result thin = thinned(full_result());
  for (const results::Run& run : thin.runs) {
    EXPECT_THAT(run.acquire.buckets, IsEmpty());
    EXPECT_THAT(run.series, IsEmpty());
  }
  for (const Hazard& hazard : *thin.hazards) EXPECT_THAT(hazard.timeline, IsEmpty());
}

TEST(Thinned, KeepsFiguresToFourDigits) {
  Result result = full_result();
  result.runs[0].acquire.p50 = 8.34567e-5;
  result.runs[0].sections_per_second = 1234567.8;
  const Result thin = thinned(result);
  EXPECT_DOUBLE_EQ(thin.runs[0].acquire.p50, 8.346e-5);
  EXPECT_DOUBLE_EQ(thin.runs[0].sections_per_second, 1235000);
  EXPECT_DOUBLE_EQ(thin.runs[0].acquire.p99, 0.00142);
  EXPECT_EQ(thin.runs[0].sections, result.runs[0].sections);
  EXPECT_THAT(to_json(thin), HasSubstr("8.346e-05"));
}

TEST(Thinned, KeepsTheWorkloadButNotWhereItWasWrittenTo) {
  Result result = full_result();
  const Result asked_for = thinned(result);
  EXPECT_THAT(asked_for.workload, Not(IsEmpty()));
  result.workload["out"] = "/home/somebody/result.json";
  EXPECT_EQ(thinned(result).workload, asked_for.workload);
}

TEST(Thinned, KeepsWhatAPlaySaid) {
  Result result = full_result();
  result.hazards->push_back(result.hazards->front());
  result.hazards->back().observed = "not-applicable";
  const Result thin = thinned(result);
  EXPECT_EQ(thin.hazards->front().evidence.size(), 1U);
  EXPECT_TRUE(thin.hazards->front().evidence.contains("reason"));
  EXPECT_EQ(thin.hazards->back().evidence.size(), 1U);
  EXPECT_TRUE(thin.hazards->back().evidence.contains("reason")) << "why it is not applicable";
}

TEST(CompactJson, IsTheSameDocumentOnFewLines) {
  const Result result = full_result();
  const std::string text = to_compact_json(result);
  const auto read = from_json(text);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(to_json(*read), to_json(result));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 30);
  const auto thin = from_json(to_compact_json(thinned(result)));
  ASSERT_TRUE(thin) << thin.error();
  EXPECT_THAT(to_json(*thin), Not(HasSubstr("asks for the lock")));
}

}  // namespace
}  // namespace lockbench::results

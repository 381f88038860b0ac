#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/tables/experiment_sheet.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

DosePoint point(std::string strategy, double ratio, std::uint64_t violated,
                std::uint64_t plays = 10) {
  return {.scenario = "pause-holding",
          .strategy = std::move(strategy),
          .ratio = ratio,
          .ttl_seconds = 0.3,
          .plays = plays,
          .violated = violated,
          .violated_share = static_cast<double>(violated) / static_cast<double>(plays)};
}

std::vector<DosePoint> some_points() {
  return {point("one", 0.5, 0), point("two", 0.5, 0), point("one", 1.25, 6), point("two", 1.25, 0),
          point("one", 2, 10)};
}

TEST(DoseSheet, HasARowForACurveAndAColumnForALength) {
  const TextSheet sheet = sheet_of(some_points());
  EXPECT_THAT(sheet.titles, ElementsAre("% violated, by length in TTLs", "0.5", "1.25", "2"));
  EXPECT_THAT(sheet.rows, ElementsAre(ElementsAre("pause-holding / one", "0", "60", "100"),
                                      ElementsAre("pause-holding / two", "0", "0", "–")));
}

TEST(DoseSheet, KeepsScenariosApart) {
  auto points = some_points();
  points[4].scenario = "overrun-holding";
  const TextSheet sheet = sheet_of(points);
  ASSERT_EQ(sheet.rows.size(), 3U);
  EXPECT_THAT(sheet.rows[2], ElementsAre("overrun-holding / one", "–", "–", "100"));
}

TEST(DoseList, HasARowForAPoint) {
  const TextSheet list = list_of(Experiment{std::vector<DosePoint>{sample_dose_point()}});
  EXPECT_EQ(to_csv(list),
            "scenario,strategy,ratio,ttl_seconds,plays,violated,violated_share\n"
            "pause-holding,redis-set-nx,1.05,0.3,8,2,0.25\n");
}

TEST(DoseReadings, SayFromWhichLengthOnHalfIsViolated) {
  EXPECT_THAT(
      readings(some_points()),
      ElementsAre("10 plays a point", "TTL 300 ms: one, two",
                  "pause-holding: at least half of the sections are violated from 1.25 TTL on: one",
                  "pause-holding: none was violated up to 1.25 TTL: two"));
}

TEST(DoseReadings, TellSeldomFromNever) {
  auto points = some_points();
  points[3] = point("two", 1.25, 1);
  EXPECT_THAT(readings(points),
              Contains("pause-holding: fewer than half are violated at the greatest length: two"));
  EXPECT_THAT(readings(points), Each(Not(HasSubstr("none was violated"))));
}

TEST(DoseReadings, SayWherePlaysAreFewerAndTtlsLonger) {
  auto points = some_points();
  points[4].strategy = "etcd";
  points[4].plays = 3;
  points[4].ttl_seconds = 2;
  const auto lines = readings(points);
  EXPECT_THAT(lines, Contains("3 to 10 plays a point"));
  EXPECT_THAT(lines, Contains("TTL 2 s: etcd"));
}

TEST(DoseSheet, OfNothingIsEmpty) {
  EXPECT_TRUE(sheet_of(std::vector<DosePoint>{}).rows.empty());
  EXPECT_TRUE(readings(std::vector<DosePoint>{}).empty());
}

}  // namespace
}  // namespace lockbench::results

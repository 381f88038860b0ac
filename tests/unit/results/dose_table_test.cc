#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/tables/experiments.h"
#include "results/tables/formats.h"
#include "tests/unit/results/samples.h"
#include "tests/unit/results/table_lines.h"

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

TEST(DoseMatrix, HasARowForACurveAndAColumnForALength) {
  const Table table = dose_matrix(some_points());
  EXPECT_THAT(titles_of(table), ElementsAre("% violated, by length in TTLs", "0.5", "1.25", "2"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(texts_of(table.rows[0]), ElementsAre("pause-holding / one", "0", "60", "100"));
  EXPECT_THAT(texts_of(table.rows[1]), ElementsAre("pause-holding / two", "0", "0", "–"));
}

TEST(DoseMatrix, KeepsScenariosApart) {
  auto points = some_points();
  points[4].scenario = "overrun-holding";
  const Table table = dose_matrix(points);
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_THAT(texts_of(table.rows[2]), ElementsAre("overrun-holding / one", "–", "–", "100"));
}

TEST(DoseTable, HasARowForAPoint) {
  EXPECT_EQ(to_csv(point_table(Experiment{std::vector<DosePoint>{sample_dose_point()}})),
            "scenario,strategy,ratio,ttl_seconds,plays,violated,violated_share\r\n"
            "pause-holding,redis-set-nx,1.05,0.3,8,2,0.25\r\n");
}

TEST(DoseFindings, SayFromWhichLengthOnHalfIsViolated) {
  EXPECT_THAT(
      findings(some_points()),
      ElementsAre("10 plays a point", "TTL 300 ms: one, two",
                  "pause-holding: at least half of the sections are violated from 1.25 TTL on: one",
                  "pause-holding: no section is violated up to 1.25 TTL: two"));
}

TEST(DoseFindings, ClaimNothingOfLengthsThatWereNotPlayed) {
  std::vector<DosePoint> points{point("one", 1.25, 0), point("one", 3, 0), point("two", 3, 0)};
  points[1].plays = points[2].plays = 0;
  EXPECT_EQ(findings(points).back(), "pause-holding: no section is violated up to 1.25 TTL: one");
}

TEST(DoseFindings, TellSeldomFromNever) {
  auto points = some_points();
  points[3] = point("two", 1.25, 1);
  EXPECT_THAT(
      findings(points),
      Contains("pause-holding: fewer than half of the sections are violated at the greatest "
               "length: two"));
  EXPECT_THAT(findings(points), Each(Not(HasSubstr("no section is violated"))));
}

TEST(DoseFindings, SayWherePlaysAreFewerAndTtlsLonger) {
  auto points = some_points();
  points[4].strategy = "etcd";
  points[4].plays = 3;
  points[4].ttl_seconds = 2;
  const auto lines = findings(points);
  EXPECT_THAT(lines, Contains("3 to 10 plays a point"));
  EXPECT_THAT(lines, Contains("TTL 2 s: etcd"));
}

TEST(DoseMatrix, OfNothingIsEmpty) {
  EXPECT_TRUE(dose_matrix({}).rows.empty());
  EXPECT_TRUE(findings(std::vector<DosePoint>{}).empty());
}

}  // namespace
}  // namespace lockbench::results

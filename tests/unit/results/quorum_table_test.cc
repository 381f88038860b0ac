#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "results/tables/experiments.h"
#include "results/tables/formats.h"
#include "tests/unit/results/samples.h"
#include "tests/unit/results/table_lines.h"

namespace lockbench::results {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Distribution around(double seconds) {
  return {.count = 100, .mean = seconds, .p50 = seconds, .p99 = 2 * seconds, .max = 3 * seconds};
}

QuorumPoint point(const char* strategy, std::uint64_t nodes, double p50, double commands,
                  double rate) {
  return {.strategy = strategy,
          .nodes = nodes,
          .sections_per_second = rate,
          .acquire = around(p50),
          .commands_per_section = commands,
          .rounds_per_grant = 1,
          .granted_share = 1};
}

QuorumPoint quorum(std::uint64_t nodes, double p50, double commands, double rate) {
  QuorumPoint made = point("redlock", nodes, p50, commands, rate);
  made.validity = around(9.89);
  return made;
}

std::vector<QuorumPoint> measured() {
  return {point("redis-set-nx-lua", 1, 60e-6, 2, 10'000), point("redis-wait", 1, 120e-6, 3, 5000),
          quorum(1, 60e-6, 2, 10'000), quorum(5, 240e-6, 10, 2500)};
}

TEST(QuorumFindings, CompareWithEveryLockOnOneNode) {
  EXPECT_THAT(
      findings(measured()),
      ElementsAre("redis-wait, 1 client: 2 × the acquire p50 of redis-set-nx-lua (120 µs), 0.5 × "
                  "its sections/s, 3 commands a section (+1)",
                  "redlock on 1 node, 1 client: 1 × the acquire p50 of redis-set-nx-lua (60 µs), "
                  "0.5 × that of redis-wait, 1 × its sections/s, 2 commands a section (+0)",
                  "redlock on 5 nodes, 1 client: 4 × the acquire p50 of redis-set-nx-lua (240 µs), "
                  "2 × that of redis-wait, 0.25 × its sections/s, 10 commands a section (+8)",
                  "each further node costs redlock, 1 client: 45 µs of acquire p50 (no interval), "
                  "2 commands a section"));
}

std::string node_cost(double seconds, const Interval& interval) {
  std::vector<QuorumPoint> points = measured();
  points.back().node_cost_seconds = seconds;
  points.back().node_cost_interval = interval;
  return findings(points).back();
}

TEST(QuorumFindings, ANodesCostHasAnIntervalAndIsNoneIfThatHoldsZeroOrIsAGain) {
  EXPECT_EQ(node_cost(41e-6, {38e-6, 44e-6}),
            "each further node costs redlock, 1 client: 41 µs of acquire p50 (95 %: 38 µs to 44 "
            "µs), 2 commands a section");
  EXPECT_EQ(node_cost(-5e-6, {-11e-6, 1.2e-6}),
            "each further node costs redlock, 1 client: none that can be shown (at most 1.2 µs of "
            "acquire p50), 2 commands a section");
  EXPECT_EQ(node_cost(-5e-6, {-6e-6, -4e-6}),
            "each further node costs redlock, 1 client: none, but −5 µs of acquire p50 (95 %: −6 "
            "µs to −4 µs), 2 commands a section");
  std::vector<QuorumPoint> points = measured();
  points.back().acquire = around(20e-6);
  EXPECT_EQ(findings(points).back(),
            "each further node costs redlock, 1 client: none that can be shown, 2 commands a "
            "section");
}

RenewalPoint renewed(double overhead, std::optional<Interval> interval) {
  auto point = std::get<std::vector<RenewalPoint>>(sample_experiment().points).front();
  point.overhead = overhead;
  point.overhead_interval = interval;
  return point;
}

std::string overhead_of(const RenewalPoint& point) {
  const Table table = point_table(std::vector{point});
  const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                   [](const Column& one) { return one.key == "overhead"; });
  return texts_of(table.rows.front()).at(static_cast<std::size_t>(column - table.columns.begin()));
}

TEST(RenewalFindings, ACostHasAnInterval) {
  const RenewalPoint point = renewed(0.04, Interval{0.012, 0.068});
  EXPECT_THAT(
      findings(std::vector{point}),
      ElementsAre(HasSubstr("10k locks renewed: cost to the other clients 4.0 % "
                            "of their throughput (95 %: 1.2 % to 6.8 %), smallest margin ")));
  EXPECT_EQ(overhead_of(point), "4.0 % ± 2.8 %");
}

TEST(RenewalFindings, NoiseIsNoCost) {
  const RenewalPoint point = renewed(0.018, Interval{-0.01, 0.046});
  EXPECT_THAT(findings(std::vector{point}),
              ElementsAre(HasSubstr("cost to the other clients none that can be shown (at most "
                                    "4.6 % of their throughput), smallest margin ")));
  EXPECT_EQ(overhead_of(point), "none shown");
  EXPECT_THAT(to_csv(point_table(std::vector{point})), HasSubstr("0.018,-0.01,0.046"));
}

TEST(RenewalFindings, OfOnePairHaveNoInterval) {
  EXPECT_THAT(findings(std::vector{renewed(0.04, std::nullopt)}),
              ElementsAre(HasSubstr("4.0 % of their throughput (no interval)")));
  EXPECT_THAT(findings(std::vector{renewed(-0.04, std::nullopt)}),
              ElementsAre(HasSubstr("none that can be shown, smallest margin ")));
}

TEST(QuorumFindings, ComparePointsWithAsManyClients) {
  std::vector<QuorumPoint> points = measured();
  for (QuorumPoint contended : measured()) {
    contended.clients = 8;
    contended.acquire = around(contended.acquire.p50 * 10);
    contended.split_votes = contended.nodes > 1 ? 7 : 0;
    contended.rounds_per_grant = 1.5;
    points.push_back(contended);
  }
  const auto lines = findings(points);
  EXPECT_THAT(lines, testing::Contains(
                         "redlock on 5 nodes, 8 clients: 4 × the acquire p50 of redis-set-nx-lua "
                         "(2.4 ms), 2 × that of redis-wait, 0.25 × its sections/s, 10 commands a "
                         "section (+8), 1.5 rounds a grant, 7 split votes"));
}

TEST(QuorumFindings, CompareIllNodesWithHealthyOnes) {
  std::vector<QuorumPoint> points = measured();
  QuorumPoint down = quorum(5, 200e-6, 6, 3000);
  down.down = 2;
  QuorumPoint slow = quorum(5, 20e-3, 10, 25);
  slow.slow = 2;
  slow.slow_seconds = 0.02;
  points.push_back(down);
  points.push_back(slow);
  const auto lines = findings(points);
  EXPECT_THAT(lines, testing::Contains("redlock with 2 of 5 nodes down: 1.2 × its healthy "
                                       "sections/s, acquire p50 200 µs, p99 400 µs"));
  EXPECT_THAT(lines, testing::Contains("redlock with 2 of 5 nodes 20 ms slower: 0.01 × its healthy "
                                       "sections/s, acquire p50 20 ms, p99 40 ms"));
}

TEST(QuorumFindings, BeginWithWhereALockFailed) {
  std::vector<QuorumPoint> points = measured();
  for (QuorumPoint& point : points) point.violated = false;
  EXPECT_THAT(violations(points), IsEmpty());
  points[3].violated = true;
  EXPECT_EQ(findings(points).front(), "redlock on 5 nodes, 1 client: exclusion was violated");
  EXPECT_EQ(point_table(points).rows[3].back().text, "yes");
  EXPECT_THAT(to_csv(point_table(points)), testing::EndsWith(",true\r\n"));
}

TEST(QuorumFindings, NothingGrantedIsNoFigure) {
  std::vector<QuorumPoint> points = measured();
  points.push_back({.strategy = "redlock", .nodes = 5, .down = 3});
  EXPECT_EQ(findings(points).back(), "redlock with 3 of 5 nodes down: nothing was granted");
}

TEST(QuorumFindings, AreNoneWhereThereIsNothingToCompare) {
  EXPECT_THAT(findings(std::vector<QuorumPoint>{}), IsEmpty());
  EXPECT_THAT(findings(std::vector{quorum(5, 1e-3, 10, 100)}), IsEmpty());
  EXPECT_THAT(findings(std::vector{point("redis-set-nx-lua", 1, 1e-3, 2, 100)}), IsEmpty());
}

TEST(QuorumTable, HasARowForEachPoint) {
  const Table table =
      point_table(Experiment{std::vector<QuorumPoint>{sample_quorum_point(), QuorumPoint()}});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(texts_of(table.rows[0]),
              ElementsAre("redlock", "5", "1", "1", "2 by 20 ms", "20 ms", "8", "1.23k", "83 µs",
                          "1.42 ms", "≥ 12.3 s", "10.5", "6", "1.25", "75.0 %", "83 µs", "100 ns",
                          "40 µs", "38 µs", "42 µs", "no"));
  EXPECT_EQ(table.rows[1].back().text, "–") << "unknown";
  EXPECT_THAT(to_markdown(shown(table), {}), HasSubstr("| redlock | 5 | 1 | 1 | 2 by 20 ms |"));
  EXPECT_THAT(to_csv(table), HasSubstr("redlock,5,1,1,2,0.02,8,"));
}

TEST(ExperimentTable, ShowsPointsOfTheirKind) {
  EXPECT_EQ(shown(point_table(sample_experiment())).columns.front().key, "held");
  EXPECT_EQ(point_table(Experiment{std::vector<QuorumPoint>{}}).columns.front().key, "strategy");
}

}  // namespace
}  // namespace lockbench::results

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/tables/experiment_sheet.h"
#include "tests/unit/results/samples.h"

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

TEST(QuorumReadings, CompareWithEveryLockOnOneNode) {
  EXPECT_THAT(
      readings(measured()),
      ElementsAre("redis-wait, 1 client: 2 × the acquire p50 of redis-set-nx-lua (120 µs), 0.5 × "
                  "its sections/s, 3 commands a section (+1)",
                  "redlock on 1 node, 1 client: 1 × the acquire p50 of redis-set-nx-lua (60 µs), "
                  "0.5 × that of redis-wait, 1 × its sections/s, 2 commands a section (+0)",
                  "redlock on 5 nodes, 1 client: 4 × the acquire p50 of redis-set-nx-lua (240 µs), "
                  "2 × that of redis-wait, 0.25 × its sections/s, 10 commands a section (+8)",
                  "each further node costs redlock, 1 client: 45 µs of acquire p50, 2 commands a "
                  "section"));
}

TEST(QuorumReadings, ComparePointsWithAsManyClients) {
  std::vector<QuorumPoint> points = measured();
  for (QuorumPoint contended : measured()) {
    contended.clients = 8;
    contended.acquire = around(contended.acquire.p50 * 10);
    contended.split_votes = contended.nodes > 1 ? 7 : 0;
    contended.rounds_per_grant = 1.5;
    points.push_back(contended);
  }
  const auto lines = readings(points);
  EXPECT_THAT(lines, testing::Contains(
                         "redlock on 5 nodes, 8 clients: 4 × the acquire p50 of redis-set-nx-lua "
                         "(2.4 ms), 2 × that of redis-wait, 0.25 × its sections/s, 10 commands a "
                         "section (+8), 1.5 rounds a grant, 7 split votes"));
}

TEST(QuorumReadings, CompareIllNodesWithHealthyOnes) {
  std::vector<QuorumPoint> points = measured();
  QuorumPoint down = quorum(5, 200e-6, 6, 3000);
  down.down = 2;
  QuorumPoint slow = quorum(5, 20e-3, 10, 25);
  slow.slow = 2;
  slow.slow_seconds = 0.02;
  points.push_back(down);
  points.push_back(slow);
  const auto lines = readings(points);
  EXPECT_THAT(lines, testing::Contains("redlock with 2 of 5 nodes down: 1.2 × its healthy "
                                       "sections/s, acquire p50 200 µs, p99 400 µs"));
  EXPECT_THAT(lines, testing::Contains("redlock with 2 of 5 nodes 20 ms slower: 0.01 × its healthy "
                                       "sections/s, acquire p50 20 ms, p99 40 ms"));
}

TEST(QuorumReadings, BeginWithWhereALockFailed) {
  std::vector<QuorumPoint> points = measured();
  for (QuorumPoint& point : points) point.violated = false;
  EXPECT_THAT(breaches(points), IsEmpty());
  points[3].violated = true;
  EXPECT_EQ(readings(points).front(), "redlock on 5 nodes, 1 client: clients were not kept apart");
  EXPECT_EQ(sheet_of(points).rows[3].back(), "yes");
  EXPECT_EQ(list_of(points).rows[3].back(), "true");
}

TEST(QuorumReadings, NothingGrantedIsNoFigure) {
  std::vector<QuorumPoint> points = measured();
  points.push_back({.strategy = "redlock", .nodes = 5, .down = 3});
  EXPECT_EQ(readings(points).back(), "redlock with 3 of 5 nodes down: nothing is granted");
}

TEST(QuorumReadings, AreNoneWhereThereIsNothingToCompare) {
  EXPECT_THAT(readings(std::vector<QuorumPoint>{}), IsEmpty());
  EXPECT_THAT(readings(std::vector{quorum(5, 1e-3, 10, 100)}), IsEmpty());
  EXPECT_THAT(readings(std::vector{point("redis-set-nx-lua", 1, 1e-3, 2, 100)}), IsEmpty());
}

TEST(QuorumSheet, HasARowForEachPoint) {
  const TextSheet sheet =
      sheet_of(Experiment{std::vector<QuorumPoint>{sample_quorum_point(), QuorumPoint()}});
  ASSERT_EQ(sheet.rows.size(), 2U);
  for (const auto& row : sheet.rows) EXPECT_EQ(row.size(), sheet.titles.size());
  EXPECT_THAT(sheet.rows[0],
              ElementsAre("redlock", "5", "1", "1", "2 by 20 ms", "8", "1.23k", "83 µs", "1.42 ms",
                          "12.3 s", "75.0 %", "10.5", "1.25", "6", "83 µs", "100 ns", "no"));
  EXPECT_EQ(sheet.rows[1].back(), "–") << "nobody said";
  EXPECT_THAT(to_table(sheet), HasSubstr("validity p50"));
  EXPECT_THAT(to_markdown(sheet), HasSubstr("| redlock | 5 | 1 | 1 | 2 by 20 ms |"));
  EXPECT_THAT(to_csv(sheet), HasSubstr("redlock,5,1,1,2 by 20 ms,8,"));
}

TEST(ExperimentSheet, ShowsPointsOfTheirKind) {
  EXPECT_EQ(sheet_of(sample_experiment()).titles.front(), "held");
  EXPECT_EQ(sheet_of(Experiment{std::vector<QuorumPoint>{}}).titles.front(), "strategy");
}

}  // namespace
}  // namespace lockbench::results

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include "results/tables/experiments.h"
#include "results/tables/formats.h"
#include "results/tables/observed.h"
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

using testing::AllOf;
using testing::Contains;
using testing::Not;
using testing::StartsWith;

TEST(CapacityFindings, SayWhatIsKeptAndWhatLimits) {
  const auto lines = findings(sample_capacity().front());
  EXPECT_THAT(lines, Contains("acquire.p99<20ms is kept up to 400/s (4800 samples, missed in 0 of "
                              "4 steps), and missed from 420/s (15.1k samples, missed in 5 of 12 "
                              "steps)"));
  EXPECT_THAT(lines, Contains(StartsWith("limit: lock: hold 2 ms")));
  EXPECT_THAT(lines, Contains("planned 200/s: kept, headroom 100 %"));
}

TEST(CapacityFindings, SayWhatIsNotKnown) {
  Capacity capacity = sample_capacity().front();
  capacity.highest = std::numeric_limits<double>::quiet_NaN();
  capacity.rates.back().decision = "open";
  EXPECT_THAT(findings(capacity),
              Contains(HasSubstr("no rate was found that misses it, of those up to 420/s (the hold "
                                 "allows no more than 500/s)")));
  EXPECT_THAT(findings(capacity), Contains(StartsWith("not decided in the time: 420/s")));
  capacity.ceiling.reset();
  EXPECT_THAT(findings(capacity), Contains(HasSubstr("no rate was found that misses it")));
}

TEST(CapacityFindings, TellAPlannedRateThatIsTooHighFromOneThatIsOpen) {
  Capacity capacity = sample_capacity().front();
  const auto planned = [&](double rate) {
    capacity.planned_rate = rate;
    return findings(capacity);
  };
  EXPECT_THAT(planned(410), Contains(StartsWith("planned 410/s: not decided")));
  EXPECT_FALSE(capacity.planned_too_high());
  EXPECT_THAT(planned(480), Contains("planned 480/s: too high, 1.2 times what is kept"));
  EXPECT_TRUE(capacity.planned_too_high());
  capacity.highest = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(capacity.planned_too_high());
  planned(500);
  EXPECT_TRUE(capacity.planned_too_high()) << "the ceiling forbids it";
}

TEST(CapacityFindings, BeginWithABrokenPromise) {
  std::vector<Capacity> capacities(3, sample_capacity().front());
  capacities[1].violated = std::nullopt;
  capacities[2].violated = true;
  EXPECT_THAT(findings(capacities[2]).front(), StartsWith("exclusion was violated"));
  for (const std::size_t fine : {0U, 1U}) {
    EXPECT_THAT(findings(capacities[fine]), Not(Contains(HasSubstr("exclusion"))));
  }
  const Table table = *chosen(capacity_table(capacities), {"violated"});
  EXPECT_EQ(table.rows.at(0).front().text, "no");
  EXPECT_EQ(table.rows.at(1).front().text, "–");
  EXPECT_EQ(table.rows.at(2).front().text, "yes");
  const auto lines = lines_of(to_csv(step_table(capacities)));
  EXPECT_THAT(lines.front(), HasSubstr(",violated\r"));
  EXPECT_THAT(lines.back(), HasSubstr(",true\r"));
}

TEST(CapacityTable, HasARowForEachStrategy) {
  Capacity none;
  none.strategy = "other";
  none.highest = std::numeric_limits<double>::quiet_NaN();
  const Table table = capacity_table({sample_capacity().front(), none});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(texts_of(table.rows[0]),
              AllOf(Contains("redis-queue"), Contains("400"), Contains("lock"), Contains("5 of 12"),
                    Contains("88.0 %"), Contains("0.5")));
  EXPECT_THAT(texts_of(table.rows[1]), AllOf(Contains("none"), Contains("–")));
}

TEST(CapacityCsv, HasPlainNumbersAndQuotedReasons) {
  auto capacities = sample_capacity();
  capacities[0].steps[0].reason = "late, by 3 ms";
  capacities[0].steps[0].server_cpu_share = std::numeric_limits<double>::quiet_NaN();
  const auto lines = lines_of(to_csv(step_table(capacities)));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("acquire_p99_seconds"));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("confirm,420,415.5,8.3e-05,0.00142,true,false,,0.2,"),
                              HasSubstr("\"late, by 3 ms\"")));
  EXPECT_THAT(lines[1], Not(HasSubstr("nan")));
}

const Cell& cell_of(const Table& table, const std::string& key) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].key == key) return table.rows.front()[c];
  }
  throw std::out_of_range(key);
}

Table table_seen(const std::string& accuracy) {
  Result result = minimal_result();
  Observed& family = result.observed.emplace().emplace_back();
  family.family = "order";
  family.accuracy = accuracy;
  family.acquisitions = 12;
  family.expired_while_held = 1;
  family.held_now = 3;
  family.oldest_hold = 1.5;
  return observed_table(result);
}

TEST(ObservedTable, EachRowHasAColumnOfItsOwn) {
  std::set<std::string> keys;
  for (const Column& column : table_seen("exact").columns) {
    EXPECT_TRUE(keys.insert(column.key).second) << column.key;
  }
  for (const FamilyRow& row : kFamilyRows) {
    EXPECT_TRUE(std::ranges::any_of(keys, [&](const std::string& key) {
      return key.starts_with(row.name);
    })) << row.name;
    EXPECT_STRNE(row.help, "") << row.name;
  }
}

TEST(ObservedTable, CountsSayHowGoodTheyAre) {
  EXPECT_EQ(cell_of(table_seen("exact"), "acquisitions").text, "12");
  EXPECT_EQ(cell_of(table_seen("at_least"), "acquisitions").text, "≥12");
  EXPECT_EQ(cell_of(table_seen("sampled"), "acquisitions").text, "~12");
  EXPECT_EQ(cell_of(table_seen("sampled"), "releases").text, "0") << "there is nothing to bound";
  EXPECT_EQ(cell_of(table_seen("sampled"), "held_now").text, "3") << "as it was at the end";
  EXPECT_EQ(cell_of(table_seen("at_least"), "expired_while_held").tone, Tone::bad);
}

TEST(ObservedTable, WhatIsOfUseOnlyMeanwhileIsShownIfAskedFor) {
  const Table table = table_seen("exact");
  EXPECT_EQ(cell_of(table, "oldest_hold_seconds").text, "1.5 s");
  EXPECT_THROW(cell_of(shown(table), "oldest_hold_seconds"), std::out_of_range);
  EXPECT_THROW(cell_of(shown(table), "session_lost"), std::out_of_range) << "there is none";
}

}  // namespace
}  // namespace lockbench::results

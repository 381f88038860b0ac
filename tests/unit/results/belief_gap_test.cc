#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "results/tables/hazards.h"
#include "tests/unit/results/table_lines.h"

namespace lockbench::results {
namespace {

using testing::ElementsAre;

constexpr double kEndless = std::numeric_limits<double>::infinity();

TEST(BeliefGap, IsSortedAndItsMedianIsOneThatWasSeen) {
  const BeliefGap gap = make_belief_gap("partition-holder", "one", {0.3, -0.1, 0.2, 0.1});
  EXPECT_THAT(gap.seconds, ElementsAre(-0.1, 0.1, 0.2, 0.3));
  EXPECT_EQ(gap.p50, 0.1);
  EXPECT_EQ(gap.max, 0.3);
}

TEST(BeliefGap, OfAHolderThatGoesOnBelievingIsWithoutEnd) {
  const BeliefGap gap = make_belief_gap("partition-holder", "one", {kEndless, 0.1, 0.2});
  EXPECT_EQ(gap.p50, 0.2);
  EXPECT_EQ(gap.max, kEndless);
}

TEST(BeliefGapTable, ShowsTheSign) {
  const Table table = belief_gap_table({make_belief_gap("partition-holder", "one", {-0.25, 0.5}),
                                        make_belief_gap("rogue-delete", "two", {kEndless})});
  EXPECT_THAT(titles_of(table), ElementsAre("belief gap", "plays", "p50", "max"));
  EXPECT_THAT(texts_of(table.rows.at(0)),
              ElementsAre("partition-holder / one", "2", "-250 ms", "+500 ms"));
  EXPECT_THAT(texts_of(table.rows.at(1)),
              ElementsAre("rogue-delete / two", "1", "unbounded", "unbounded"));
}

TEST(BeliefGap, IsListedByStrategyForScenariosOfWhichAHolderKnew) {
  const auto cell = [](const char* scenario, const char* strategy, const char* observed) {
    return Hazard{.scenario = scenario, .strategy = strategy, .observed = observed};
  };
  const Table table = belief_gap_matrix(
      {cell("partition", "one", "known-loss"), cell("partition", "two", "double-grant"),
       cell("delete", "two", "double-grant"), cell("partition", "three", "safe")},
      {make_belief_gap("partition", "one", {-1.1}), make_belief_gap("partition", "two", {0.5}),
       make_belief_gap("delete", "two", {2})});
  EXPECT_EQ(to_csv(table), "strategy,partition\r\none,-1.1 s\r\ntwo,+500 ms\r\n");
}

}  // namespace
}  // namespace lockbench::results

#include "results/tables/belief_sheet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

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

TEST(BeliefSheet, ShowsTheSign) {
  const TextSheet sheet = sheet_of({make_belief_gap("partition-holder", "one", {-0.25, 0.5}),
                                    make_belief_gap("rogue-delete", "two", {kEndless})});
  EXPECT_THAT(sheet.titles, ElementsAre("belief gap", "plays", "p50", "max"));
  EXPECT_THAT(sheet.rows,
              ElementsAre(ElementsAre("partition-holder / one", "2", "-250 ms", "+500 ms"),
                          ElementsAre("rogue-delete / two", "1", "without end", "without end")));
}

}  // namespace
}  // namespace lockbench::results

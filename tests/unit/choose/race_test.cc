#include "choose/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockbench::choose {
namespace {

using testing::ElementsAre;

TEST(Race, DropsWhatIsHopeless) {
  EXPECT_THAT(still_in({{1}, {3}, {5}}), ElementsAre(true, true, false));
}

TEST(Race, DoesNotDropWhatHasNoValueYet) {
  EXPECT_THAT(still_in({{1}, {}}), ElementsAre(true, true));
  EXPECT_THAT(still_in({{}, {}}), ElementsAre(true, true));
  EXPECT_FALSE(is_settled({{1, 1, 1, 1}, {}}));
}

TEST(Race, DropsWhatCanBeToldApart) {
  EXPECT_THAT(still_in({{1, 1.02, 1.01}, {1.5, 1.52, 1.49}, {0.9, 1.3, 1.1}}),
              ElementsAre(true, false, true));
}

TEST(Race, IsNotWonByASingleValue) {
  EXPECT_THAT(still_in({{1}, {1.5, 1.52, 1.49}}), ElementsAre(true, true));
}

TEST(Race, IsSettledWhenTheFirstTierHasRoundsEnough) {
  EXPECT_FALSE(is_settled({{1, 1, 1}, {1, 1, 1}}));
  EXPECT_TRUE(is_settled({{1, 1, 1, 1}, {1, 1, 1, 1}}));
  EXPECT_FALSE(is_settled({{1}, {9}})) << "one value may be luck";
  EXPECT_TRUE(is_settled({{1, 1, 1, 1}, {9}})) << "only one is left";
}

}  // namespace
}  // namespace lockbench::choose

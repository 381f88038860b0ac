#include <gtest/gtest.h>

#include "hazards/play.h"
#include "tests/hazards/support/house.h"
#include "tests/support/test_names.h"

// What stages do to sessions, and which grounds there cannot be.

namespace lockbench::hazards::test {
namespace {

using namespace std::chrono_literals;

class Sessions : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    auto stage = house().stage(strategy(GetParam()), Ground::shared);
    ASSERT_TRUE(stage) << stage.error().reason;
    static int plays = 0;
    play_.emplace(house(), *stage, strategy(GetParam()),
                  "lockbench:stages:{" + std::to_string(++plays));
  }

  std::optional<Play> play_;
};

TEST_P(Sessions, EndWithTheirOwnLocksAlone) {
  Actor& neighbour = play_->client("neighbour");
  neighbour.must_acquire();
  const std::string neighbours = play_->key();
  play_->change_key();
  Actor& holder = play_->client("holder");
  Actor& waiter = play_->client("waiter");
  holder.must_acquire();
  waiter.start_acquire(20s);
  waiter.await_waiting();
  play_->stage().end_session(play_->key());
  EXPECT_TRUE(waiter.finish_acquire().granted()) << "of two in the queue it was the holder's";

  play_->stage().end_session(play_->key());
  play_->stage().end_session(neighbours);
}

TEST_P(Sessions, CannotBeEndedWhereNobodyHoldsTheLock) {
  Actor& holder = play_->client("holder");
  EXPECT_EQ(holder.release(holder.must_acquire()), ReleaseOutcome::released);
  EXPECT_THROW(play_->stage().end_session(play_->key()), StageFailure);
}

INSTANTIATE_TEST_SUITE_P(, Sessions,
                         testing::Values("zookeeper", "zookeeper-herd", "etcd", "chubby",
                                         "postgres-advisory", "postgres-row"),
                         [](const auto& tested) {
                           return lockbench::test::test_name_of(tested.param);
                         });

TEST(Grounds, ThatCannotBeSayWhy) {
  const std::pair<std::string_view, Ground> none[] = {{"etcd", Ground::clocked},
                                                      {"etcd", Ground::cramped},
                                                      {"zookeeper", Ground::cramped},
                                                      {"postgres-row", Ground::cramped}};
  for (const auto& [name, ground] : none) {
    const auto stage = house().stage(strategy(name), ground);
    ASSERT_FALSE(stage) << name;
    EXPECT_TRUE(stage.error().by_nature) << name;
    EXPECT_NE(stage.error().reason, "") << name;
  }
}

}  // namespace
}  // namespace lockbench::hazards::test

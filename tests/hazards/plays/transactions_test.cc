#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hazards/verdicts.h"
#include "tests/hazards/support/house.h"

// What ends a transaction that waits for a lock, and what is not a verdict.

namespace lockbench::hazards::test {
namespace {

Cell inside(std::string_view limit, std::string_view lock) {
  Cell cell =
      play(house(), scenario("transaction-timeout-inside-" + std::string(limit)), strategy(lock));
  EXPECT_TRUE(cell.agrees()) << description_of(cell);
  return cell;
}

class TransactionThatWaits : public testing::TestWithParam<std::string_view> {};

TEST_P(TransactionThatWaits, IsRolledBackByLimitsOfItsWait) {
  for (const std::string_view limit : {"statement", "lock"}) {
    const Cell ended = inside(limit, GetParam());
    EXPECT_EQ(std::get<bool>(ended.evidence.at("transaction_committed")), false);
    EXPECT_THAT(ended.reason, testing::HasSubstr(std::string(limit) + " timeout"));
  }
}

TEST_P(TransactionThatWaits, IsNotIdle) {
  const Cell idle = inside("idle", GetParam());
  EXPECT_EQ(std::get<bool>(idle.evidence.at("transaction_committed")), true);
}

INSTANTIATE_TEST_SUITE_P(, TransactionThatWaits,
                         testing::Values("postgres-advisory", "postgres-row"),
                         [](const auto& tested) {
                           return std::string(tested.param.substr(tested.param.find('-') + 1));
                         });

/// Rejects statements at once, for a reason other than a timeout.
class RefusingStage : public Stage {
 public:
  explicit RefusingStage(std::shared_ptr<Stage> stage) : stage_(std::move(stage)) {}

  Endpoints endpoints(std::uint16_t port) const override { return stage_->endpoints(port); }
  std::uint16_t port() const override { return stage_->port(); }
  void limit(Limit /*what*/, std::chrono::seconds /*time*/) override {}
  void begin_transaction() override {}
  tl::expected<void, std::string> wait_in_transaction(const std::string& /*key*/) override {
    return tl::unexpected<std::string>("no such table");
  }
  bool commit_transaction() override { return false; }

 private:
  const std::shared_ptr<Stage> stage_;
};

TEST(WaitInATransaction, ThatEndsBeforeItsLimitIsNoVerdict) {
  auto stage = house().stage(strategy("postgres-advisory"), Ground::shared);
  ASSERT_TRUE(stage) << stage.error().reason;
  Play play(house(), std::make_shared<RefusingStage>(*stage), strategy("postgres-advisory"),
            fresh_key());
  EXPECT_THROW(scenario("transaction-timeout-inside-statement").play(play), StageFailure);
}

TEST(WaitInATransaction, WhoseSessionIsEndedIsNoVerdict) {
  auto stage = house().stage(strategy("postgres-advisory"), Ground::durable);
  ASSERT_TRUE(stage) << stage.error().reason;
  Play play(house(), *stage, strategy("postgres-advisory"), fresh_key());
  play.client("guest").warm_up();  // creates the lock's tables
  (*stage)->begin_transaction();
  const auto granted = (*stage)->wait_in_transaction(play.key());
  ASSERT_TRUE(granted) << granted.error();
  (*stage)->end_session(play.key());
  EXPECT_THROW((void)(*stage)->wait_in_transaction(play.key()), StageFailure);
}

}  // namespace
}  // namespace lockbench::hazards::test

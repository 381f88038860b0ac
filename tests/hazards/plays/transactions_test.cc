#include <gmock/gmock.h>

#include "hazards/verdicts.h"
#include "tests/hazards/support/fixtures.h"

// What ends a transaction that waits for a lock, and what is not a verdict.

namespace lockbench::hazards::test {
namespace {

Cell inside(std::string_view limit, std::string_view lock) {
  Cell cell = undisturbed("transaction-timeout-inside-" + std::string(limit), lock);
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
class RefusingStore : public PrivateStore {
 public:
  explicit RefusingStore(std::shared_ptr<PrivateStore> store)
      : PrivateStore("postgres"), store_(std::move(store)) {}

  Servers servers() const override { return store_->servers(); }
  void limit(Limit /*what*/, std::chrono::seconds /*time*/) override {}
  void begin_transaction() override {}
  tl::expected<void, std::string> wait_in_transaction(const std::string& /*key*/) override {
    return tl::unexpected<std::string>("no such table");
  }
  bool commit_transaction() override { return false; }

 private:
  const std::shared_ptr<PrivateStore> store_;
};

TEST(WaitInATransaction, ThatEndsBeforeItsLimitIsNoVerdict) {
  Play play(server_pool(), std::make_shared<RefusingStore>(store_for("postgres-advisory")),
            strategy("postgres-advisory"), fresh_key());
  EXPECT_THROW(scenario("transaction-timeout-inside-statement").play(play), Failure);
}

TEST(WaitInATransaction, WhoseSessionIsEndedIsNoVerdict) {
  Stage play("postgres-advisory", Setup::durable);
  play.client("guest").warm_up();  // creates the lock's tables
  play.store().begin_transaction();
  const auto granted = play.store().wait_in_transaction(play.key());
  ASSERT_TRUE(granted) << granted.error();
  play.store().end_session(play.key());
  EXPECT_THROW((void)play.store().wait_in_transaction(play.key()), Failure);
}

}  // namespace
}  // namespace lockbench::hazards::test

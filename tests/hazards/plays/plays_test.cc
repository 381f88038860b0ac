#include <gmock/gmock.h>

#include <algorithm>

#include "hazards/verdicts.h"
#include "tests/hazards/support/fixtures.h"
#include "tests/support/test_names.h"

// Plays without a verdict, the times that plays measure, and the end of a waiting transaction.

namespace lockbench::hazards::test {
namespace {

struct Failing {
  std::string_view scenario, mutant, reason;

  friend std::ostream& operator<<(std::ostream& out, const Failing& failing) {
    return out << failing.scenario << " / " << failing.mutant;
  }
};

class Failures : public testing::TestWithParam<Failing> {};

TEST_P(Failures, OfTheStoreAreNoVerdict) {
  const auto& [name, mutant, reason] = GetParam();
  const Cell cell = undisturbed(name, mutant);
  EXPECT_FALSE(cell.played()) << description_of(cell);
  EXPECT_TRUE(cell.failed) << description_of(cell);
  EXPECT_NE(cell.reason.find(reason), std::string::npos) << description_of(cell);
}

constexpr std::string_view kNoAnswer = "gave an acquisition no answer";
constexpr std::string_view kNoRelease = "did not reach the store";

INSTANTIATE_TEST_SUITE_P(
    , Failures,
    testing::Values(Failing{"contention", "test-silent", kNoAnswer},
                    Failing{"reentry", "test-silent", kNoAnswer},
                    Failing{"reentry", "test-silent-confused", kNoAnswer},
                    Failing{"getset-rewrite", "test-silent-getset", kNoAnswer},
                    Failing{"redlock-slow-nodes", "test-silent-redlock", kNoAnswer},
                    Failing{"session-expiry", "test-silent-etcd", kNoAnswer},
                    Failing{"transaction-timeout-statement", "test-cut-off", kNoAnswer},
                    Failing{"store-restart-empty", "test-refused-free", "was not taken"},
                    Failing{"redlock-split-vote", "test-silent-refusal", kNoAnswer},
                    Failing{"lost-answer-acquire", "test-silent-for-good", kNoAnswer},
                    Failing{"late-release", "test-unheard-release", kNoRelease},
                    Failing{"holder-clock-behind", "test-unheard-release", kNoRelease},
                    Failing{"release-race", "test-unheard-release", kNoRelease},
                    Failing{"crash-waiting", "test-unheard-release", kNoRelease},
                    Failing{"release-without-holding", "test-unheard-repetition", kNoRelease},
                    Failing{"lost-answer-release", "test-unheard-repetition", kNoRelease}),
    [](const auto& tested) {
      return lockbench::test::test_name_of(std::string(tested.param.scenario) + "_" +
                                           std::string(tested.param.mutant));
    });

/// A grant before the fault is not an effect of the fault.
TEST(Verdicts, OnAReturnAreForGrantsThatCameAfterIt) {
  const Scenario early{.name = "early", .question = "?", .play = [](Play& play) {
                         const Grant grant = play.client("early").must_acquire();
                         return verdict_of_return(play, grant, grant.answered_at + Duration(1));
                       }};
  const Cell cell = undisturbed(early, strategy("redis-set-nx-lua"));
  EXPECT_TRUE(cell.failed) << description_of(cell);
  EXPECT_NE(cell.reason.find("before it could become free"), std::string::npos) << cell.reason;
}

using namespace std::chrono_literals;

TimePoint time_of(const Cell& cell, std::string_view who, std::string_view what) {
  const auto found = std::find_if(
      cell.timeline.begin(), cell.timeline.end(),
      [&](const TimelineEntry& entry) { return entry.who == who && entry.what.starts_with(what); });
  if (found == cell.timeline.end()) throw std::runtime_error(description_of(cell));
  return found->at;
}

double belief_gap(const std::map<std::string, Fact>& evidence) {
  return std::get<double>(evidence.at("belief_gap_seconds"));
}

TEST(Faults, OfTwoTtlsLastThatLong) {
  constexpr Duration kTtl = 500ms;
  const Cell pause = undisturbed("pause-holding", "test-sound");
  EXPECT_GE(time_of(pause, "fault", "holder is resumed") - time_of(pause, "holder", "is granted"),
            2 * kTtl)
      << description_of(pause);
  const Cell cut = undisturbed("partition-holder", "test-sound");
  EXPECT_GE(time_of(cut, "fault", "the holder's connection is restored") -
                time_of(cut, "holder", "is granted"),
            2 * kTtl)
      << description_of(cut);
}

TEST(BeliefGap, ShowsALeaseThatIsTooLong) {
  const Cell sound = undisturbed("partition-holder", "test-sound");
  EXPECT_LE(belief_gap(sound.evidence), 0.0) << description_of(sound);
  const Cell cell = undisturbed("partition-holder", "test-overstays");
  ASSERT_TRUE(cell.played()) << description_of(cell);
  EXPECT_GT(belief_gap(cell.evidence), 0.0) << description_of(cell);
}

TEST(Return, IsStuckWhereItTakesLongerThanItsBound) {
  Stage play("test-sound");
  const TimePoint since{};
  Grant grant;
  grant.outcome = AcquireOutcome::acquired;
  grant.answered_at = since + 2s;
  EXPECT_EQ(verdict_of_return(play, grant, since, 2s).outcome, HazardOutcome::recovers);
  const Verdict late = verdict_of_return(play, grant, since, 1s);
  EXPECT_EQ(late.outcome, HazardOutcome::stuck);
  EXPECT_THAT(late.reason, testing::HasSubstr("after 2000 ms, later than the bound of 1000 ms"));
}

Cell inside(std::string_view limit, std::string_view lock) {
  Cell cell = undisturbed("transaction-timeout-inside-" + std::string(limit), lock);
  EXPECT_TRUE(cell.agrees()) << description_of(cell);
  return cell;
}

class TransactionThatWaits : public testing::TestWithParam<std::string_view> {};

TEST_P(TransactionThatWaits, IsRolledBackByLimitsOfItsWait) {
  using Limit = std::pair<std::string_view, std::string>;
  for (const auto& [limit, said] :
       {Limit{"statement", "statement timeout"}, Limit{"lock", "ended the wait for the lock"}}) {
    const Cell ended = inside(limit, GetParam());
    EXPECT_EQ(std::get<bool>(ended.evidence.at("transaction_committed")), false);
    EXPECT_THAT(ended.reason, testing::HasSubstr(said));
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

/// Rejects statements immediately, for a reason other than a timeout.
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
            strategy("postgres-advisory"));
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

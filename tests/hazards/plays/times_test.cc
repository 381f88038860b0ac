#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "hazards/verdicts.h"
#include "tests/hazards/support/fixtures.h"

// Times that plays measure, and how long faults last.

namespace lockbench::hazards::test {
namespace {

using namespace std::chrono_literals;

TimePoint time_of(const Cell& cell, std::string_view who, std::string_view what) {
  const auto found =
      std::find_if(cell.timeline.begin(), cell.timeline.end(), [&](const Timeline::Entry& entry) {
        return entry.who == who && entry.what.starts_with(what);
      });
  if (found == cell.timeline.end()) throw std::runtime_error(description_of(cell));
  return found->at;
}

double belief_gap(const std::map<std::string, Fact>& evidence) {
  return std::get<double>(evidence.at("belief_gap_seconds"));
}

TEST(Faults, OfTwoTtlsLastThatLong) {
  constexpr Duration kTtl = 500ms;
  const Cell pause = play(server_pool(), scenario("pause-holding"), strategy("test-sound"));
  EXPECT_GE(time_of(pause, "fault", "holder is resumed") - time_of(pause, "holder", "is granted"),
            2 * kTtl)
      << description_of(pause);
  const Cell cut = play(server_pool(), scenario("partition-holder"), strategy("test-sound"));
  EXPECT_GE(time_of(cut, "fault", "the holder's connection is restored") -
                time_of(cut, "holder", "is granted"),
            2 * kTtl)
      << description_of(cut);
}

/// Returns late from ending a session.
class SlowStore : public PrivateStore {
 public:
  explicit SlowStore(std::shared_ptr<PrivateStore> store)
      : PrivateStore("etcd", false, store->shortest_session()), store_(std::move(store)) {}

  Servers servers() const override { return store_->servers(); }
  void end_session(const std::string& key) override {
    store_->end_session(key);
    std::this_thread::sleep_for(3s);  // longer than the owner takes to notice
  }

 private:
  const std::shared_ptr<PrivateStore> store_;
};

TEST(BeliefGap, OfASessionBeginsNoLaterThanItsEnd) {
  auto store = server_pool().store(strategy("etcd"), Setup::shared);
  ASSERT_TRUE(store) << store.error().reason;
  Play play(server_pool(), std::make_shared<SlowStore>(*store), strategy("etcd"), fresh_key());
  scenario("session-expiry").play(play);
  EXPECT_GE(belief_gap(play.evidence()), 0.0) << "the loss cannot be known before it happens";
}

TEST(BeliefGap, ShowsALeaseThatIsALittleTooLong) {
  double longest = -1;
  for (int i = 0; i < 4 && longest <= 0; ++i) {
    const Cell cell = play(server_pool(), scenario("partition-holder"), strategy("test-overstays"));
    ASSERT_TRUE(cell.played()) << description_of(cell);
    longest = std::max(longest, belief_gap(cell.evidence));
  }
  EXPECT_GT(longest, 0.0);
}

TEST(Price, OfFrozenNodesIsByTheStrategysOwnPatience) {
  // For two nodes that other clients of a play wait for.
  const double patient = seconds(2 * ActorSettings{}.node_timeout.value());
  double least = patient;
  for (int i = 0; i < 3 && least >= patient; ++i) {
    const Cell cell = play(server_pool(), scenario("redlock-minority-frozen"), strategy("redlock"));
    ASSERT_TRUE(cell.agrees()) << description_of(cell);
    least = std::min(least, std::get<double>(cell.evidence.at("first_acquire_seconds_after")));
  }
  EXPECT_LT(least, patient);
}

TEST(Return, IsStuckWhereItTakesLongerThanItsBound) {
  auto store = server_pool().store(strategy("test-sound"), Setup::shared);
  ASSERT_TRUE(store) << store.error().reason;
  Play play(server_pool(), *store, strategy("test-sound"), fresh_key());
  const TimePoint since{};
  Grant grant;
  grant.outcome = AcquireOutcome::acquired;
  grant.answered_at = since + 2s;
  EXPECT_EQ(verdict_of_return(play, grant, since, 2s).outcome, HazardOutcome::recovers);
  const Verdict late = verdict_of_return(play, grant, since, 1s);
  EXPECT_EQ(late.outcome, HazardOutcome::stuck);
  EXPECT_THAT(late.reason, testing::HasSubstr("after 2000 ms, later than the bound of 1000 ms"));
}

}  // namespace
}  // namespace lockbench::hazards::test

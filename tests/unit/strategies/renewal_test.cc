#include "strategies/renewal.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "strategies/carrier.h"
#include "tests/support/eventually.h"
#include "tests/support/fake_renewal_channel.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;
using test::eventually;

struct Reports : StrategyObserver {
  void on_renewal(const RenewalReport& report) override { all.push_back(report); }
  std::vector<RenewalReport> all;
};

/// The scheduler on simulated time.
class RenewalTest : public testing::Test {
 protected:
  FakeRenewalStore& store(const std::string& name) {
    FakeRenewalStore& made = stores_.emplace_back(clock_);
    scheduler_.provide_channel(name, [&](Env&) { return made.connect(); });
    return made;
  }

  RenewalOrder order(const std::string& key, Duration ttl = std::chrono::seconds(9)) {
    return {.key = key,
            .token = "token of " + key,
            .state = std::make_shared<LeaseState>(clock_.now() + ttl, clock_.now()),
            .granted_at = clock_.now(),
            .ttl = ttl,
            .channels = {"one"}};
  }

  /// A failed renewal is repeated soon.
  RenewalOrder impatient(const std::string& key, Duration ttl = std::chrono::seconds(9)) {
    RenewalOrder made = order(key, ttl);
    made.timing.retries_soon = true;
    return made;
  }

  void run(Duration time) { run_until(clock_.now() + time, scheduler_, clock_); }

  std::vector<std::string> keys_asked(const FakeRenewalStore& store) {
    std::vector<std::string> keys;
    for (const auto& asked : store.asked()) keys.push_back(asked.key);
    return keys;
  }

  SimClock clock_;
  Reports reports_;
  std::deque<FakeRenewalStore> stores_;
  RenewalScheduler scheduler_{std::make_unique<SimEnv>(clock_), reports_,
                              RenewalScheduler::Drive::by_hand};
  const TimePoint start_ = clock_.now();
};

TEST_F(RenewalTest, RenewsInTheOrderOfDueTimes) {
  FakeRenewalStore& one = store("one");
  const auto slow = scheduler_.keep(order("slow", 9s));
  const auto fast = scheduler_.keep(order("fast", 6s));
  EXPECT_EQ(scheduler_.run_due(), start_ + 2s);
  EXPECT_TRUE(one.asked().empty());
  run(4500ms);
  EXPECT_EQ(keys_asked(one), (std::vector<std::string>{"fast", "slow", "fast"}));
  EXPECT_EQ(one.asked()[1].at, start_ + 3s);
  EXPECT_EQ(one.asked()[1].ttl, 9s);
}

TEST_F(RenewalTest, BatchesTheRenewalsOfOneStore) {
  FakeRenewalStore& one = store("one");
  FakeRenewalStore& two = store("two");
  std::vector<std::shared_ptr<Renewal>> kept;
  for (int i = 0; i < 600; ++i) {
    RenewalOrder made = order("key " + std::to_string(i));
    if (i % 6 == 0) made.channels = {"two"};
    kept.push_back(scheduler_.keep(std::move(made)));
  }
  run(3s);
  EXPECT_EQ(one.asked().size(), 500U);
  EXPECT_EQ(two.asked().size(), 100U);
  EXPECT_LE(one.batches(), 3);
  EXPECT_LE(two.batches(), 3);
}

TEST_F(RenewalTest, WhatIsDueSoonGoesWithWhatIsDueAndKeepsItsTurn) {
  FakeRenewalStore& one = store("one");
  RenewalOrder first = order("first"), soon = order("soon"), later = order("later"),
               quick = order("quick", 30ms);
  soon.granted_at += 4ms;
  later.granted_at += 6ms;
  quick.granted_at += 3s - 6ms;  // due 4 ms after the first; for its TTL that is not soon
  const std::vector<std::shared_ptr<Renewal>> kept{scheduler_.keep(first), scheduler_.keep(soon),
                                                   scheduler_.keep(later)};
  const auto fast = scheduler_.keep(quick);
  run(3s);
  EXPECT_EQ(keys_asked(one), (std::vector<std::string>{"first", "soon"}));
  EXPECT_EQ(one.batches(), 1);
  fast->stop();
  run(27s);
  for (const auto& asked : one.asked()) {
    const Duration into_turn = (asked.at - start_) % Duration(3s);
    EXPECT_EQ(into_turn, asked.key == "later" ? 6ms : 0ms) << asked.key;
  }
  EXPECT_EQ(one.asked().size(), 10U + 10 + 9);
}

TEST_F(RenewalTest, TheNaiveTimingStartsLateAndContinuesFaster) {
  FakeRenewalStore& one = store("one");
  RenewalOrder naive = order("k", 10s);
  naive.timing = {.first_share = 0.8, .share = 0.5};
  const auto kept = scheduler_.keep(std::move(naive));
  run(14s);
  ASSERT_EQ(one.asked().size(), 2U);
  EXPECT_EQ(one.asked()[0].at, start_ + 8s);
  EXPECT_EQ(one.asked()[1].at, start_ + 13s);
}

TEST_F(RenewalTest, UsesAFixedInterval) {
  FakeRenewalStore& one = store("one");
  RenewalOrder often = order("k", 10s);
  often.timing = {.every = 250ms};
  const auto kept = scheduler_.keep(std::move(often));
  run(1s);
  EXPECT_EQ(one.asked().size(), 4U);
}

TEST_F(RenewalTest, ValidityCountsFromBeforeTheRequest) {
  store("one").set_round_trip(80ms);
  RenewalOrder made = order("k");
  made.drift = 20ms;
  const auto state = made.state;
  const auto kept = scheduler_.keep(std::move(made));
  run(3s);
  EXPECT_EQ(state->valid_until(), start_ + 3s + 9s - 20ms);
  EXPECT_EQ(state->confirmed_at(), start_ + 3s);
}

TEST_F(RenewalTest, ReportsSlipAndMargin) {
  store("one").set_round_trip(80ms);
  const auto kept = scheduler_.keep(order("k"));
  clock_.advance(3s + 200ms);
  scheduler_.run_due();
  ASSERT_EQ(reports_.all.size(), 1U);
  const RenewalReport& report = reports_.all.front();
  EXPECT_EQ(report.outcome, RenewalAnswer::renewed);
  EXPECT_EQ(report.slip, 200ms);
  EXPECT_EQ(report.duration, 80ms);
  EXPECT_EQ(report.margin, 9s - 3s - 280ms);
}

TEST_F(RenewalTest, ALossIsRecordedAndEndsRenewal) {
  FakeRenewalStore& one = store("one");
  one.set_round_trip(30ms);
  one.answer_with(RenewalAnswer::not_owner);
  RenewalOrder made = order("k");
  const auto state = made.state;
  const auto kept = scheduler_.keep(std::move(made));
  run(30s);
  EXPECT_EQ(state->lost_at(), start_ + 3s + 30ms);
  EXPECT_EQ(one.asked().size(), 1U);
  EXPECT_EQ(scheduler_.kept(), 0U);
  ASSERT_EQ(reports_.all.size(), 1U);
  EXPECT_EQ(reports_.all.front().outcome, RenewalAnswer::not_owner);
}

TEST_F(RenewalTest, AFailedOneWaitsForItsNextTurnAsRedissonsDoes) {
  FakeRenewalStore& one = store("one");
  one.answer_with(RenewalAnswer::failed);
  const auto kept = scheduler_.keep(order("k"));
  run(8s);
  ASSERT_EQ(one.asked().size(), 2U);
  EXPECT_EQ(one.asked()[0].at, start_ + 3s);
  EXPECT_EQ(one.asked()[1].at, start_ + 6s);
  EXPECT_EQ(reports_.all.back().slip, 3s) << "since the turn that failed first";
}

/// What that costs: with turns, a lock outlasts an outage of a third of its TTL at any time; with
/// repetitions, one of two thirds.
TEST_F(RenewalTest, RepetitionsOutlastAnOutageThatTurnsDoNot) {
  FakeRenewalStore& one = store("one");
  one.answer_with(RenewalAnswer::failed);
  const RenewalOrder turns = order("turns"), soon = impatient("soon");
  const auto states = std::pair(turns.state, soon.state);
  const auto kept = std::pair(scheduler_.keep(turns), scheduler_.keep(soon));
  run(8s);
  one.answer_with(RenewalAnswer::renewed);
  run(900ms);
  EXPECT_EQ(states.first->valid_until(), start_ + 9s);
  EXPECT_GT(states.second->valid_until(), start_ + 16s);
}

TEST_F(RenewalTest, SlipGrowsUntilOneSucceeds) {
  FakeRenewalStore& one = store("one");
  one.answer_with(RenewalAnswer::failed);
  const auto kept = scheduler_.keep(impatient("k"));
  run(5s);
  ASSERT_GE(reports_.all.size(), 2U);
  EXPECT_GE(reports_.all.back().slip, 1s) << "it was due after 3 s";
  one.answer_with(RenewalAnswer::renewed);
  run(2s);
  EXPECT_GE(reports_.all.back().slip, 1900ms);
  run(4s);
  EXPECT_LE(reports_.all.back().slip, 10ms);
}

TEST_F(RenewalTest, BacksOffAfterFailures) {
  FakeRenewalStore& one = store("one");
  one.answer_with(RenewalAnswer::failed);
  RenewalOrder made = impatient("k", 300s);
  const auto state = made.state;
  const auto kept = scheduler_.keep(std::move(made));
  run(100s + 4s);
  const auto& asked = one.asked();
  ASSERT_GE(asked.size(), 5U);
  EXPECT_LE(asked[1].at - asked[0].at, 20ms);
  for (std::size_t i = 2; i < asked.size(); ++i) {
    EXPECT_GE(asked[i].at - asked[i - 1].at, asked[i - 1].at - asked[i - 2].at);
    EXPECT_LE(asked[i].at - asked[i - 1].at, 1s);
  }
  EXPECT_EQ(reports_.all.front().reason, "told to fail");
  EXPECT_EQ(state->lost_at(), std::nullopt);
  EXPECT_EQ(state->valid_until(), start_ + 300s);

  one.answer_with(RenewalAnswer::renewed);
  run(2s);
  EXPECT_GT(state->valid_until(), start_ + 100s + 300s);
}

TEST_F(RenewalTest, AFailedStoreDoesNotDelayOthers) {
  FakeRenewalStore& one = store("one");
  FakeRenewalStore& two = store("two");
  one.answer_with(RenewalAnswer::failed);
  RenewalOrder first = impatient("a", 300s), second = impatient("b", 300s),
               other = order("c", 300s);
  second.granted_at += 6ms;
  other.granted_at += 7ms;
  other.channels = {"two"};
  const std::vector<std::shared_ptr<Renewal>> kept{scheduler_.keep(first), scheduler_.keep(second),
                                                   scheduler_.keep(other)};
  run(100s);
  EXPECT_EQ(keys_asked(one), std::vector<std::string>{"a"});
  run(8ms);  // within the pause
  EXPECT_EQ(keys_asked(one), std::vector<std::string>{"a"});
  EXPECT_EQ(keys_asked(two), std::vector<std::string>{"c"});
  run(100ms);
  const auto keys = keys_asked(one);
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()), (std::set<std::string>{"a", "b"}));
}

TEST_F(RenewalTest, AStoreThatFailedIsAskedAfterTheOthers) {
  FakeRenewalStore& one = store("one");
  FakeRenewalStore& two = store("two");
  one.answer_with(RenewalAnswer::failed);
  one.set_round_trip(1s);  // its timeout
  RenewalOrder first = order("a"), other = order("b");
  first.granted_at -= 3s;
  other.granted_at += 2ms;
  other.channels = {"two"};
  const std::vector<std::shared_ptr<Renewal>> kept{scheduler_.keep(first), scheduler_.keep(other)};
  run(3s);
  ASSERT_EQ(one.asked().size(), 2U);
  ASSERT_EQ(two.asked().size(), 1U);
  EXPECT_EQ(two.asked().front().at, start_ + 3s);
  EXPECT_EQ(one.asked().back().at, start_ + 3s);
}

TEST_F(RenewalTest, IsNeverRenewedPastItsCap) {
  FakeRenewalStore& one = store("one");
  for (const Duration drift : {Duration(0ms), Duration(100ms)}) {
    RenewalOrder made = order("k");
    made.cap = 14s;
    made.drift = drift;
    const auto state = made.state;
    const TimePoint granted = clock_.now();
    const auto kept = scheduler_.keep(std::move(made));
    const std::size_t before = one.asked().size();
    run(40s);
    // At 3 s for 9 s, at 6 s for the rest up to the cap, then no more.
    ASSERT_EQ(one.asked().size(), before + 2);
    EXPECT_EQ(one.asked().back().ttl, 8s);
    EXPECT_EQ(state->valid_until(), granted + 14s - drift);
    EXPECT_EQ(state->lost_at(), std::nullopt);
    EXPECT_EQ(scheduler_.kept(), 0U);
  }
}

TEST_F(RenewalTest, StopsTryingAtTheCap) {
  FakeRenewalStore& one = store("one");
  one.answer_with(RenewalAnswer::failed);
  RenewalOrder made = order("k");
  made.cap = 14s;
  const auto kept = scheduler_.keep(std::move(made));
  run(40s);
  for (const auto& asked : one.asked()) {
    EXPECT_GT(asked.ttl, 0ms) << "would end the lease at once";
    EXPECT_LE(asked.at + asked.ttl, start_ + 14s);
  }
  EXPECT_EQ(scheduler_.kept(), 0U);
}

TEST_F(RenewalTest, IgnoresTheAnswerAfterAStop) {
  FakeRenewalStore& one = store("one");
  for (const RenewalAnswer answer :
       {RenewalAnswer::renewed, RenewalAnswer::not_owner, RenewalAnswer::failed}) {
    one.answer_with(answer);
    RenewalOrder made = order("k");
    const auto state = made.state;
    const TimePoint was = state->valid_until();
    const auto kept = scheduler_.keep(std::move(made));
    one.on_flush([&] { kept->stop(); });
    run(10s);
    EXPECT_TRUE(reports_.all.empty());
    EXPECT_EQ(state->lost_at(), std::nullopt);
    EXPECT_EQ(state->valid_until(), was);
    EXPECT_EQ(scheduler_.kept(), 0U);
  }
  EXPECT_EQ(one.asked().size(), 3U);
}

TEST_F(RenewalTest, ARenewalMayBeDestroyedWhileUnderWay) {
  FakeRenewalStore& one = store("one");
  auto kept = scheduler_.keep(order("k"));
  one.on_flush([&] { kept.reset(); });
  run(3s);
  EXPECT_EQ(one.asked().size(), 1U);
  run(30s);
  EXPECT_LE(one.asked().size(), 2U);  // it has no owner any more
  EXPECT_EQ(scheduler_.kept(), 0U);
}

class QuorumRenewalTest : public RenewalTest {
 protected:
  QuorumRenewalTest() {
    RenewalOrder made = impatient("k");
    made.channels = {"one", "two", "three"};
    made.quorum = 2;
    made.drift = 100ms;
    for (const std::string& name : made.channels) nodes_.push_back(&store(name));
    state_ = made.state;
    kept_ = scheduler_.keep(std::move(made));
  }
  std::vector<FakeRenewalStore*> nodes_;
  std::shared_ptr<LeaseState> state_;
  std::shared_ptr<Renewal> kept_;
};

TEST_F(QuorumRenewalTest, AMajorityRenewsFromTheFirstRequestLessDrift) {
  for (FakeRenewalStore* node : nodes_) node->set_round_trip(50ms);
  nodes_[1]->answer_with(RenewalAnswer::failed);
  run(3s);
  EXPECT_EQ(state_->valid_until(), start_ + 3s + 9s - 100ms);
  EXPECT_EQ(reports_.all.front().outcome, RenewalAnswer::renewed);
  EXPECT_EQ(reports_.all.front().commands, 3) << "each node's is one";
}

TEST_F(QuorumRenewalTest, AMinorityIsTriedAgain) {
  nodes_[0]->answer_with(RenewalAnswer::failed);
  nodes_[2]->answer_with(RenewalAnswer::not_owner);
  run(4s);
  EXPECT_EQ(state_->valid_until(), start_ + 9s);
  EXPECT_EQ(state_->lost_at(), std::nullopt);
  EXPECT_GE(reports_.all.size(), 2U);
  nodes_[0]->answer_with(RenewalAnswer::renewed);
  run(1s);
  EXPECT_GT(state_->valid_until(), start_ + 12s);
}

TEST_F(QuorumRenewalTest, ARefusalByTheMajorityLosesTheLease) {
  nodes_[0]->answer_with(RenewalAnswer::not_owner);
  nodes_[2]->answer_with(RenewalAnswer::not_owner);
  run(4s);
  EXPECT_EQ(state_->lost_at(), start_ + 3s);
  EXPECT_EQ(scheduler_.kept(), 0U);
}

TEST_F(QuorumRenewalTest, AfterAReleaseNoFurtherNodeIsAsked) {
  RenewalOrder other = impatient("other");
  other.channels = {"one", "two"};
  const auto kept = scheduler_.keep(std::move(other));
  nodes_[0]->on_flush([&] { kept_->stop(); });
  run(3s);
  EXPECT_EQ(keys_asked(*nodes_[0]), (std::vector<std::string>{"k", "other"}));
  EXPECT_EQ(keys_asked(*nodes_[1]), std::vector<std::string>{"other"});
  EXPECT_TRUE(nodes_[2]->asked().empty());
  EXPECT_EQ(nodes_[2]->batches(), 0);
  EXPECT_EQ(state_->valid_until(), start_ + 9s);
  EXPECT_EQ(reports_.all.size(), 1U) << "the other's";
}

/// With a real thread and real time.
class LiveChannel : public RenewalChannel {
 public:
  explicit LiveChannel(std::atomic<int>& asked) : asked_(asked) {}
  void queue(std::string_view, std::string_view, Duration) override { ++asked_; }
  void flush(const std::stop_token&) override {}
  RenewalAnswer answer(const std::stop_token&) override { return RenewalAnswer::renewed; }
  std::string failure() const override { return {}; }

 private:
  std::atomic<int>& asked_;
};

/// Tells the test when its thread goes to sleep.
class DrowsyWorld : public ForwardingEnv {
 public:
  DrowsyWorld(std::unique_ptr<Env> inner, std::atomic<int>& sleeps)
      : ForwardingEnv(std::move(inner)), sleeps_(sleeps) {}
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    ++sleeps_;
    return ForwardingEnv::wait(event, deadline, stop);
  }

 private:
  std::atomic<int>& sleeps_;
};

struct LiveReports : StrategyObserver {
  void on_renewal(const RenewalReport&) override { ++count; }
  std::atomic<int> count{0};
};

RenewalOrder live_order() {
  const TimePoint now = Carrier::current().now();
  return {.key = "k",
          .token = "t",
          .state = std::make_shared<LeaseState>(now + test::kPatience, now),
          .granted_at = now,
          .ttl = test::kPatience,
          .timing = {.every = 1ms},
          .channels = {"one"}};
}

TEST(LiveRenewal, ManyThreadsStartAndStopRenewals) {
  LiveReports reports;
  std::atomic<int> asked{0};
  RenewalScheduler scheduler(make_system_env(1), reports);
  scheduler.provide_channel("one", [&](Env&) { return std::make_unique<LiveChannel>(asked); });
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 300; ++i) {
          const RenewalOrder made = live_order();
          const auto kept = scheduler.keep(made);
          if (i % 3 == 0) {
            EXPECT_TRUE(eventually([&asked, before = asked.load()] { return asked > before; }));
          }
          if (i % 2 == 0) kept->stop();
          EXPECT_EQ(made.state->lost_at(), std::nullopt);
        }
      });
    }
  }
  // The scheduler's thread frees renewals that were under way at the end.
  EXPECT_TRUE(eventually([&] { return scheduler.kept() == 0; }));
  EXPECT_GT(asked, 0);
}

TEST(LiveRenewal, WakesForARenewalThatIsDueEarlier) {
  LiveReports reports;
  std::atomic<int> asked{0}, sleeps{0};
  RenewalScheduler scheduler(std::make_unique<DrowsyWorld>(make_system_env(1), sleeps), reports);
  scheduler.provide_channel("one", [&](Env&) { return std::make_unique<LiveChannel>(asked); });
  RenewalOrder late = live_order();
  late.timing.every = 1h;
  const auto first = scheduler.keep(std::move(late));
  ASSERT_TRUE(eventually([&] { return sleeps > 0; }));
  const auto second = scheduler.keep(live_order());
  EXPECT_TRUE(eventually([&] { return reports.count > 0; }));
}

}  // namespace
}  // namespace lockbench

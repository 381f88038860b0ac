#include <gtest/gtest.h>

#include "loadgen/run/worker.h"
#include "strategies/observer.h"
#include "tests/support/run_shared.h"
#include "tests/support/sim_env.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

/// A run whose load began at 1 s, whose warm-up ends at 2 s and which ends at 5 s.
class ServiceRecordingTest : public testing::Test {
 protected:
  ServiceRecordingTest() {
    run_.load_start = origin_ + 1s;
    run_.measure_start = origin_ + 2s;
    run_.load_end = origin_ + 5s;
    record_services(run_);
    world_ = make_service_env(run_.services);
  }

  void begin() { run_.started = true; }
  void move_to(Duration time) { clock_.advance_to(origin_ + time); }

  void command() {
    EXPECT_EQ(world_->before_command(kRenewal), CommandFate::proceed);
    EXPECT_EQ(world_->after_command(kRenewal, CommandEnd::answered), CommandFate::proceed);
  }
  void renewal(RenewalAnswer outcome = RenewalAnswer::renewed) {
    run_.services.get<StrategyObserver>().on_renewal(
        {.outcome = outcome, .duration = 1ms, .margin = 1s});
  }
  Counts counts(Phase phase) const { return run_.recorder.totals(phase); }

  static constexpr CommandInfo kRenewal{
      .store = "s", .endpoint = "e", .name = "renew_if_token", .key = "k"};

  SimClock clock_;
  const TimePoint origin_ = clock_.now();
  const Descriptor strategy_{.name = "tested"};
  test::RunUnderTest under_test_{strategy_, 1, 3, nullptr, [this](std::uint64_t seed) {
                                   return std::make_unique<SimEnv>(clock_, seed);
                                 }};
  RunShared& run_ = under_test_.shared();
  std::unique_ptr<Env> world_;
};

TEST_F(ServiceRecordingTest, WhatServicesDoBelongsToThePhaseInWhichTheyDoIt) {
  begin();
  for (const Duration time : {1500ms, 1999ms, 2000ms, 3000ms, 4999ms, 5000ms, 6000ms}) {
    move_to(time);
    command();
    renewal();
  }
  EXPECT_EQ(counts(Phase::measured)[Count::commands], 3U);
  EXPECT_EQ(counts(Phase::measured)[Count::renewals], 3U);
  EXPECT_EQ(counts(Phase::unmeasured)[Count::commands], 2U);
  EXPECT_EQ(counts(Phase::unmeasured)[Count::renewals], 2U);
  EXPECT_EQ(counts(Phase::ending)[Count::commands], 2U);
  EXPECT_EQ(counts(Phase::ending)[Count::renewals], 2U);
}

TEST_F(ServiceRecordingTest, VotesAndReplicasBelongToThePhaseToo) {
  auto& observer = run_.services.get<StrategyObserver>();
  begin();
  for (const Duration time : {1500ms, 1600ms, 3000ms, 4000ms, 6000ms, 6100ms}) {
    move_to(time);
    observer.on_vote(1, Vote::granted, 2ms, false);
    observer.on_vote(2, Vote::refused, 3ms, true);
    observer.on_round(true, 9s);
    observer.on_acknowledged(4ms, 1, 2);
  }
  for (const Phase phase : kPhases) {
    const auto& nodes = run_.recorder.histograms(phase).nodes;
    EXPECT_EQ(nodes[1].count(Vote::granted), 2U);
    EXPECT_EQ(nodes[1].taken_by(Vote::granted).snapshot().sum, 4ms);
    EXPECT_EQ(nodes[2].count(Vote::refused), 2U) << "late ones too";
    EXPECT_EQ(nodes[2].taken_by(Vote::refused).snapshot().count(), 0U);
    EXPECT_EQ(counts(phase)[Count::split_votes], 2U);
    EXPECT_EQ(run_.recorder.histograms(phase)[Timing::quorum_validity].snapshot().count(), 2U);
    EXPECT_EQ(counts(phase)[Count::replica_refusals], 2U);
    EXPECT_EQ(run_.recorder.histograms(phase)[Timing::replica_wait].snapshot().sum, 8ms);
  }
}

TEST_F(ServiceRecordingTest, BeforeAnyLoadNothingIsMeasured) {
  move_to(3s);  // whatever the times may be: they are not set yet
  command();
  renewal();
  EXPECT_EQ(counts(Phase::measured)[Count::commands], 0U);
  EXPECT_EQ(counts(Phase::measured)[Count::renewals], 0U);
}

TEST_F(ServiceRecordingTest, NothingIsMeasuredAfterARunThatEndsEarly) {
  begin();
  move_to(3s);
  command();
  run_.over.request_stop();
  command();
  renewal();
  EXPECT_EQ(counts(Phase::measured)[Count::commands], 1U);
  EXPECT_EQ(counts(Phase::measured)[Count::renewals], 0U);
  EXPECT_EQ(counts(Phase::ending)[Count::renewals], 1U);
}

TEST_F(ServiceRecordingTest, EachServiceHasAWorldOfItsOwn) {
  begin();
  move_to(3s);
  EXPECT_EQ(world_->now(), clock_.now()) << "of the run's own kind";
  const auto other = make_service_env(run_.services);
  EXPECT_NE(other->random(), world_->random());
  other->before_command(kRenewal);
  EXPECT_EQ(counts(Phase::measured)[Count::commands], 1U);
}

}  // namespace
}  // namespace lockbench::loadgen

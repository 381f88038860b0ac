#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <thread>

#include "loadgen/run/fault.h"
#include "tests/support/eventually.h"
#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::kNotTheLoadAskedFor;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Notes of events, from any thread.
class Notes {
 public:
  void add(std::string what) {
    const std::scoped_lock lock(mutex_);
    notes_.push_back(std::move(what));
  }
  std::vector<std::string> all() const {
    const std::scoped_lock lock(mutex_);
    return notes_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;
};

/// Records its faults; while one strikes, no lock is granted.
class FakeTarget : public FaultTarget {
 public:
  using Done = tl::expected<void, std::string>;

  Done inject(const Descriptor& strategy, const Fault& fault) override {
    calls_.add(std::string(strategy.name) + " " + fault.what);
    struck = true;
    if (on_inject) on_inject();
    if (refuses) return tl::unexpected<std::string>("it would not die");
    return {};
  }
  Done heal(const Descriptor&, const Fault& fault) override {
    calls_.add("heal " + fault.what);
    struck = false;
    if (on_heal) on_heal();
    if (cannot_heal) return tl::unexpected<std::string>("it would not start");
    return {};
  }
  std::vector<std::string> calls() const { return calls_.all(); }

  std::atomic<bool> struck{false};
  bool refuses = false, cannot_heal = false;
  std::function<void()> on_inject, on_heal;

 private:
  Notes calls_;
};

/// Notes the beginning and end of faults and of the run.
class FaultWatcher : public RunWatcher {
 public:
  void run_begins(const RunShared&) override { seen_.add("begins"); }
  void run_ends(const RunShared&, const results::Run* result) override {
    seen_.add(result == nullptr ? "does not start"
                                : fmt::format("ends with {}", result->faults.size()));
  }
  void fault_changes(const RunShared&, FaultKind fault, bool active) override {
    seen_.add(std::string(to_string(fault)) + (active ? " on" : " off"));
  }
  std::vector<std::string> seen() const { return seen_.all(); }

 private:
  Notes seen_;
};

class FaultPlayerTest : public LiveRunTest {
 protected:
  FaultPlayerTest() {
    plan_.fault_target = &target_;
    plan_.watcher = &faults_seen_;
    // An open loop makes up for missed sections, so throughput recovers on any machine.
    open_loop(2000);
    plan_.workload.duration = 1s;
  }

  void strike(const std::string& fault) { plan_.faults.push_back(parse_fault(fault).value()); }
  results::Run run_struck() { return run_one(lock_); }
  /// Ends the run with that event, however long it takes.
  void end_with(std::function<void()>& event) {
    plan_.workload.duration = 60s;
    event = [this] { stop_.request_stop(); };
  }

  FakeTarget target_;
  FaultWatcher faults_seen_;
  const Behaviour behaviour_{
      .acquire = [this](const Context& context, const AcquireRequest& request) {
        // Until the fault or the run ends.
        while (target_.struck) {
          const TimePoint soon = context.env.now() + 1ms;
          if (context.env.wait(nullptr, soon, request.stop) == WaitResult::stopped) {
            return outcome(AcquireOutcome::abandoned);
          }
        }
        return grant(request);
      }};
  const Descriptor lock_ = scripted("lock", behaviour_);
};

TEST_F(FaultPlayerTest, MakesAFaultAndHealsItAndTellsWhatItDid) {
  strike("store-freeze@300ms+300ms");
  plan_.workload.duration = 2s;
  const results::Run run = run_struck();
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-freeze", "heal store-freeze"));
  ASSERT_EQ(run.faults.size(), 1U);
  const results::FaultMark& mark = run.faults[0];
  EXPECT_EQ(mark.fault, "store-freeze");
  EXPECT_GE(mark.at_seconds, 0.3);
  ASSERT_TRUE(mark.healed_seconds);
  EXPECT_GE(*mark.healed_seconds, 0.6);
  EXPECT_LT(mark.lowest_share, 0.2);
  ASSERT_TRUE(mark.recovery_seconds);
  EXPECT_GE(*mark.recovery_seconds, 0);
  EXPECT_THAT(run.errors, IsEmpty());
  EXPECT_THAT(watcher_.warnings, IsEmpty());
  EXPECT_THAT(faults_seen_.seen(),
              ElementsAre("begins", "store-freeze on", "store-freeze off", "ends with 1"));
}

TEST_F(FaultPlayerTest, TheWatcherSeesTheEndOfARunThatCannotStart) {
  plan_.endpoints = {{"redis", {"redis://127.0.0.1:1"}}};
  EXPECT_EQ(run({&named("redis-setnx")}).not_started.size(), 1U);
  EXPECT_THAT(faults_seen_.seen(), ElementsAre("begins", "does not start"));
}

TEST_F(FaultPlayerTest, SeveralAreMadeOneAfterTheOther) {
  strike("store-freeze@100ms+100ms");
  strike("delay:1ms@300ms+100ms");
  plan_.workload.warmup = 200ms;
  plan_.workload.duration = 60s;
  int healed = 0;
  target_.on_heal = [&] {
    if (++healed == 2) stop_.request_stop();
  };
  const results::Run run = run_struck();
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-freeze", "heal store-freeze",
                                           "lock delay:1ms", "heal delay:1ms"));
  ASSERT_EQ(run.faults.size(), 2U);
  EXPECT_GE(run.faults[0].at_seconds, 0.3) << "after the warm-up, as seen from its beginning";
  EXPECT_EQ(run.faults[1].fault, "delay:1ms");
  EXPECT_GT(run.faults[1].at_seconds, run.faults[0].healed_seconds.value());
}

TEST_F(FaultPlayerTest, WhatLastsUntilTheEndIsHealedThen) {
  strike("store-kill@300ms");
  const results::Run run = run_struck();
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-kill", "heal store-kill"));
  ASSERT_EQ(run.faults.size(), 1U);
  EXPECT_EQ(run.faults[0].healed_seconds, std::nullopt);
  EXPECT_EQ(run.faults[0].recovery_seconds, std::nullopt);
  EXPECT_THAT(faults_seen_.seen(), Contains("store-kill off"));
}

TEST_F(FaultPlayerTest, AStopInMidFaultHealsAndKeepsTheMark) {
  strike("store-freeze@50ms+30s");
  plan_.workload.duration = 60s;
  target_.on_inject = [this] { stop_.request_stop(); };
  const RunReport report = run({&lock_});
  EXPECT_TRUE(report.interrupted);
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-freeze", "heal store-freeze"));
  ASSERT_EQ(report.runs.size(), 1U);
  ASSERT_EQ(report.runs[0].faults.size(), 1U);
  EXPECT_EQ(report.runs[0].faults[0].healed_seconds, std::nullopt);
  EXPECT_THAT(watcher_.warnings, IsEmpty());
}

TEST_F(FaultPlayerTest, ARunWithNothingBeforeTheFaultHasNoShare) {
  target_.struck = true;
  strike("store-freeze@0s");
  end_with(target_.on_inject);
  const results::Run run = run_struck();
  ASSERT_EQ(run.faults.size(), 1U);
  EXPECT_TRUE(std::isnan(run.faults[0].lowest_share));
  EXPECT_EQ(run.faults[0].recovery_seconds, std::nullopt);
}

TEST_F(FaultPlayerTest, WhatCannotBeMadeIsHealedAndSaid) {
  target_.refuses = true;
  strike("store-kill@50ms+50ms");
  end_with(target_.on_inject);
  const results::Run run = run_struck();
  EXPECT_THAT(target_.calls(), ElementsAre("lock store-kill", "heal store-kill"));
  EXPECT_THAT(run.faults, IsEmpty());
  EXPECT_THAT(run.errors, ElementsAre(HasSubstr("fault store-kill@50ms+50ms: it would not die")));
  EXPECT_THAT(watcher_.warnings, ElementsAre(HasSubstr("it would not die")));
}

TEST_F(FaultPlayerTest, WhatCannotBeHealedIsSaid) {
  target_.cannot_heal = true;
  strike("store-kill@50ms+50ms");
  end_with(target_.on_heal);
  const results::Run run = run_struck();
  EXPECT_EQ(run.faults.size(), 1U);
  EXPECT_THAT(watcher_.warnings, ElementsAre(HasSubstr("it would not start")));
}

TEST_F(FaultPlayerTest, WithoutAThreadItIsHealedInTimeAllTheSame) {
  real_time_ = true;
  pthread_attr_t usual{};
  pthread_getattr_default_np(&usual);
  target_.on_inject = [] {
    pthread_attr_t none{};
    pthread_attr_init(&none);
    // More than the address space: no thread can be created.
    pthread_attr_setstacksize(&none, std::size_t{1} << 60);
    EXPECT_EQ(pthread_setattr_default_np(&none), 0);
    EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  };
  target_.on_heal = [&] {
    pthread_setattr_default_np(&usual);
    stop_.request_stop();
  };
  strike("store-freeze@300ms+100ms");
  plan_.workload.duration = test::kPatience;
  EXPECT_LT(run_struck().duration_seconds, seconds(test::kPatience))
      << "ended by the healing, not that by the end";
}

TEST_F(FaultPlayerTest, ThatSectionsBeginLateIsTheFaultsDoing) {
  strike("store-freeze@100ms+300ms");
  const results::Run run = run_struck();
  EXPECT_GT(run.schedule_lag.max, 0.1);
  EXPECT_THAT(run.generator.reasons, Not(Contains(HasSubstr(std::string(kNotTheLoadAskedFor)))));
}

TEST_F(FaultPlayerTest, ThatTheyDidSoBeforeItOrWithoutItIsNot) {
  hold(10ms);
  for (const char* fault : {"store-freeze@900ms+10ms", "store-freeze@0s"}) {
    plan_.faults.clear();
    strike(fault);
    target_.refuses = plan_.faults.front().at == 0s;  // the fault could not be injected
    const results::Run run = run_struck();
    EXPECT_THAT(run.generator.reasons, Contains(HasSubstr(std::string(kNotTheLoadAskedFor))));
  }
}

TEST_F(FaultPlayerTest, AFaultThatTheRunDidNotLiveToSeeIsNotPassedOver) {
  strike("store-kill@50s+1s");
  end_after(20);
  const results::Run run = run_struck();
  EXPECT_THAT(run.faults, IsEmpty());
  EXPECT_THAT(target_.calls(), IsEmpty());
  EXPECT_THAT(watcher_.warnings,
              ElementsAre(HasSubstr("store-kill@50s+1s: the run of lock was over before")));
}

/// A lock with a TTL, renewed by a service of the run, that frees itself only by expiry.
class ClientFaultTest : public LiveRunTest {
 protected:
  ClientFaultTest() {
    plan_.fault_target = &target_;
    plan_.workload.clients = 3;
    plan_.workload.duration = 4s;
    plan_.workload.ttl = kTtl;
    plan_.workload.think = DurationDistribution::constant(3ms);
    hold(10ms);
  }

  AcquireResult take(const Context& context, const AcquireRequest& request) {
    Env& env = context.env;
    while (holder_ && env.now() < valid_until_) {
      if (env.now() >= request.deadline) return outcome(AcquireOutcome::timed_out);
      if (env.wait(nullptr, env.now() + 1ms, request.stop) == WaitResult::stopped) {
        return outcome(AcquireOutcome::abandoned);
      }
    }
    holder_ = ++grants_;
    taken_by_.push_back(context.client);
    valid_until_ = env.now() + kTtl;
    AcquireResult granted = grant(request);
    granted.lease->token = std::to_string(grants_);
    return granted;
  }
  ReleaseResult give_back(const Lease& lease) {
    if (holder_ != std::stoi(lease.token)) return {ReleaseOutcome::not_owner, {}};
    holder_.reset();
    return {ReleaseOutcome::released, {}};
  }

  results::Run run_with(const char* fault) {
    plan_.faults = {parse_fault(fault).value()};
    return run_one(lock_);
  }

  static constexpr Duration kTtl = 1s;
  FakeTarget target_;
  std::optional<int> holder_;
  int grants_ = 0;
  TimePoint valid_until_{};
  std::vector<int> taken_by_;
  const Behaviour behaviour_{
      .acquire = [this](const Context& context,
                        const AcquireRequest& request) { return take(context, request); },
      .release = [this](const Lease& lease) { return give_back(lease); }};
  const Descriptor lock_ = scripted("lock", behaviour_);
};

TEST_F(ClientFaultTest, APausedHolderLosesItsLockAndWritesLate) {
  const results::Run run = run_with("client-pause:2s@1s");
  ASSERT_EQ(run.faults.size(), 1U);
  EXPECT_EQ(run.faults[0].fault, "client-pause:2s");
  EXPECT_GE(run.faults[0].at_seconds, 1);
  EXPECT_LT(run.faults[0].at_seconds, 1.5) << "when it next holds the lock";
  EXPECT_NEAR(run.faults[0].healed_seconds.value_or(0), run.faults[0].at_seconds + 2, 0.1);
  EXPECT_LT(run.faults[0].lowest_share, 0.3) << "nobody is served until the TTL is over";
  EXPECT_GE(run.hold.max, 2);
  EXPECT_GE(run.audit.overlaps, 1U) << "another client came in meanwhile";
  EXPECT_GE(run.audit.lost_updates, 1U);
  EXPECT_EQ(run.releases_not_owner, 1U);
  EXPECT_EQ(run.audit.verdict, results::Verdict::violated);
  EXPECT_THAT(target_.calls(), IsEmpty()) << "no server is struck";
}

TEST_F(ClientFaultTest, AKilledHolderReleasesNothingAndIsGone) {
  const results::Run run = run_with("client-kill@1s");
  ASSERT_EQ(run.faults.size(), 1U);
  EXPECT_EQ(run.faults[0].healed_seconds, std::nullopt);
  EXPECT_EQ(run.audit.overlaps, 0U) << "the dead do not work";
  EXPECT_EQ(run.audit.lost_updates, 0U);
  EXPECT_EQ(run.releases_not_owner, 0U);
  EXPECT_GE(run.acquire.max, 0.9) << "the next one waits for the TTL";
  const auto last = std::find(taken_by_.rbegin(), taken_by_.rend(), Victim::kClient);
  EXPECT_GT(last - taken_by_.rbegin(), 10) << "only the others go on";
}

TEST_F(ClientFaultTest, AnotherProcessTakesAKilledOnesPlace) {
  const results::Run run = run_with("client-kill@1s+1s");
  ASSERT_EQ(run.faults.size(), 1U);
  EXPECT_TRUE(run.faults[0].healed_seconds);
  const auto last = std::find(taken_by_.rbegin(), taken_by_.rend(), Victim::kClient);
  EXPECT_LT(last - taken_by_.rbegin(), 10);
  EXPECT_THAT(run.errors, IsEmpty());
}

TEST_F(ClientFaultTest, OneThatNeverHoldsALockIsNotStruck) {
  const Behaviour never{.acquire = wait_in_vain};
  plan_.faults = {parse_fault("client-kill@1s").value()};
  const results::Run run = run_one(never);
  EXPECT_THAT(run.faults, IsEmpty());
  EXPECT_THAT(watcher_.warnings, ElementsAre(HasSubstr("client-kill@1s")));
}

/// The Env of one of the victim's services.
TEST(VictimEnv, SendsNothingWhilePausedOrDeadAndGoesOnAfterwards) {
  test::on_virtual_time([] {
    Victim victim;
    VictimEnv env(victim, make_system_env(1));
    const auto event = env.make_event();
    const auto fate = [&] { return env.before_command({.name = "ping"}); };
    EXPECT_EQ(victim.strike(env.now()), std::nullopt) << "not armed";
    const Fault pause = parse_fault("client-pause:2s@0s").value();
    victim.arm(pause, *event);
    EXPECT_EQ(fate(), CommandFate::proceed);
    const TimePoint struck = env.now();
    EXPECT_EQ(victim.strike(struck), FaultKind::client_pause);
    EXPECT_EQ(fate(), CommandFate::drop);
    EXPECT_EQ(env.wait(nullptr, struck + 100ms, {}), WaitResult::timed_out);
    EXPECT_EQ(env.now(), struck + 2s) << "a renewal that is due meanwhile comes late";
    EXPECT_EQ(fate(), CommandFate::proceed);
    const Fault kill = parse_fault("client-kill@0s").value();
    victim.arm(kill, *event);
    EXPECT_EQ(victim.strike(env.now()), FaultKind::client_kill);
    EXPECT_EQ(fate(), CommandFate::drop);
    victim.replace();
    EXPECT_EQ(fate(), CommandFate::proceed);
  });
}

}  // namespace
}  // namespace lockbench::loadgen

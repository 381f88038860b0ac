#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <thread>

#include "history/checker.h"
#include "history/operation.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/client_hosts.h"
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
using testing::StartsWith;

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

/// A count that grows at given rates, read every 10 ms.
class RecoveryMeterTest : public testing::Test {
 protected:
  static constexpr double kBefore = 10'000;

  void go_on(Duration duration, double rate) {
    const TimePoint until = now_ + duration;
    while (now_ < until) {
      now_ += 10ms;
      count_ += rate / 100;
      meter_.read(now_, static_cast<std::uint64_t>(count_));
    }
  }

  RecoveryMeterTest() { meter_.read(now_, 0); }

  TimePoint now_{};
  double count_ = 0;
  RecoveryMeter meter_{kBefore};
};

TEST_F(RecoveryMeterTest, KnowsNothingBeforeAWholeWindow) {
  go_on(meter_.window() - 10ms, 0);
  EXPECT_EQ(meter_.lowest_share(), 1);
  EXPECT_FALSE(meter_.back_at());
  go_on(10ms, 0);
  EXPECT_EQ(meter_.lowest_share(), 0);
}

TEST_F(RecoveryMeterTest, FindsWhenThroughputIsBackAfterHealing) {
  go_on(500ms, 0);
  meter_.healed(now_);
  const TimePoint healed_at = now_;
  go_on(300ms, 100);
  EXPECT_FALSE(meter_.back_at());
  go_on(300ms, kBefore);
  ASSERT_TRUE(meter_.back_at());
  const Duration took = *meter_.back_at() - healed_at;
  EXPECT_GE(took, 290ms);
  EXPECT_LE(took, 310ms);
  EXPECT_EQ(meter_.lowest_share(), 0);
}

TEST_F(RecoveryMeterTest, NinetyPerCentAreEnoughAndLessIsNot) {
  go_on(200ms, 0);
  meter_.healed(now_);
  go_on(500ms, 0.85 * kBefore);
  EXPECT_FALSE(meter_.back_at());
  go_on(500ms, 0.95 * kBefore);
  EXPECT_TRUE(meter_.back_at());
}

TEST_F(RecoveryMeterTest, MeasuresHowDeepItFell) {
  go_on(300ms, 0.5 * kBefore);
  go_on(300ms, 0.25 * kBefore);
  meter_.healed(now_);
  go_on(300ms, kBefore);
  EXPECT_NEAR(meter_.lowest_share(), 0.25, 0.01);
  go_on(300ms, 0);
  EXPECT_NEAR(meter_.lowest_share(), 0.25, 0.01)
      << "what comes after the recovery is another story";
}

TEST_F(RecoveryMeterTest, AFaultMayBeOvercomeBeforeItIsHealedWhichIsNoRecoveryFromIt) {
  go_on(400ms, 0.1 * kBefore);
  go_on(300ms, kBefore);
  ASSERT_TRUE(meter_.back_at());
  EXPECT_GE(*meter_.back_at() - TimePoint{}, 390ms);
  EXPECT_LE(*meter_.back_at() - TimePoint{}, 410ms);
  meter_.healed(now_);
  EXPECT_FALSE(meter_.back_at());
  go_on(300ms, 0);
  EXPECT_FALSE(meter_.back_at());
}

TEST(RecoveryMeterBefore, ADipOfAFewCountsIsChance) {
  RecoveryMeter meter(30);
  TimePoint now{};
  std::uint64_t count = 0;
  meter.read(now, count);
  for (const std::uint64_t each : {15, 40, 30}) {
    now += 1s;
    count += each;
    meter.read(now, count);
  }
  EXPECT_EQ(meter.lowest_share(), 1) << "15 of 30 may come by chance";
  now += 1s;
  meter.read(now, count + 5);
  EXPECT_NEAR(meter.lowest_share(), 5 / 30.0, 1e-9);
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

TEST_F(ClientFaultTest, AKilledHolderHoldsNothingInTheHistoryEither) {
  const test::TemporaryFolder folder;
  const std::string path = (folder / "run.edn").string();
  const auto log = history::Log::open(path).value();
  plan_.history = log.get();
  const results::Run run = run_with("client-kill@1s");
  ASSERT_TRUE(log->close());
  ASSERT_EQ(run.faults.size(), 1U);
  const auto judged = history::judge(history::read(path).value(), {}).value();
  EXPECT_EQ(judged.contradictions, run.audit.overlaps);
  EXPECT_EQ(run.audit.overlaps, 0U);
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

TEST(RecoveryMeterBefore, TooLittleTellsNoRate) {
  EXPECT_FALSE(RecoveryMeter::after(25ms, 1'000)) << "three sections more or less, or a burst";
  EXPECT_FALSE(RecoveryMeter::after(10s, 3));
  EXPECT_FALSE(RecoveryMeter::after(1s, 0));
  // Windows are long enough for several counts.
  EXPECT_EQ(RecoveryMeter::after(100ms, 100'000).value().window(), 100ms);
  EXPECT_EQ(RecoveryMeter::after(1s, 200).value().window(), 500ms);
  EXPECT_EQ(RecoveryMeter::after(100s, 100).value().window(), 1s);
}

std::string error_of(const std::string& text) {
  const auto fault = parse_fault(text);
  return fault ? "accepted" : fault.error();
}

TEST(Fault, EveryNameIsKnownAndShownAsItIsRead) {
  for (const std::string_view name : kFaults) {
    for (const char* times : {"@2s", "@1500ms+1s"}) {
      const bool takes_a_time = name == "delay" || name == "client-pause";
      if (name == "client-pause" && std::string_view(times).ends_with("+1s")) continue;
      const std::string text = std::string(name) + (takes_a_time ? ":5ms" : "") + times;
      const auto fault = parse_fault(text);
      ASSERT_TRUE(fault) << fault.error();
      EXPECT_EQ(to_string(fault->kind), name);
      EXPECT_EQ(fault->to_string(), text);
    }
  }
}

TEST(Fault, MayHaveAParameterAndATimeOfHealing) {
  EXPECT_EQ(parse_fault("node-kill:2@1s")->nodes, 2);
  EXPECT_EQ(parse_fault("node-freeze@1s")->nodes, 1);
  EXPECT_EQ(parse_fault("partition:0.25@1s")->share, 0.25);
  EXPECT_EQ(parse_fault("partition@1s")->share, 0.5);
  EXPECT_EQ(parse_fault("partition:1@1s")->share, 1);
  EXPECT_EQ(parse_fault("client-pause:2s@1s")->heals_at(), 3s);
  EXPECT_EQ(parse_fault("delay:5ms@1s")->delay, 5ms);
  EXPECT_EQ(parse_fault("delay:5ms@1s")->what, "delay:5ms");
  EXPECT_EQ(parse_fault("store-freeze@1s")->heals_at(), std::nullopt);
  EXPECT_EQ(parse_fault("failover@1s")->heals_at(), 1s) << "another takes the place";
  EXPECT_EQ(parse_fault("failover@1s+2s")->heals_at(), 3s);
}

TEST(Fault, ErrorsNameTheCulpritAndWhatIsAllowed) {
  EXPECT_THAT(error_of("crash@1s"), StartsWith("\"crash\" is none of store-kill, store-freeze"));
  EXPECT_THAT(error_of(""), StartsWith("\"\" is none of"));
  EXPECT_THAT(error_of("store-kill"), HasSubstr("has no time: use store-kill@2s"));
  EXPECT_THAT(error_of("store-kill@soon"), HasSubstr("\"soon\" is not a duration"));
  EXPECT_THAT(error_of("store-kill@1s+"), HasSubstr("\"\" is not a duration"));
  EXPECT_THAT(error_of("store-kill@-1s"), HasSubstr("\"-1s\" is not a duration"));
  EXPECT_THAT(error_of("store-kill@1s+0s"), HasSubstr("at least 1ms"));
  EXPECT_THAT(error_of("failover:2@1s"), HasSubstr("failover takes no parameter"));
  EXPECT_THAT(error_of("failover:@1s"), HasSubstr("failover takes no parameter"));
  EXPECT_THAT(error_of("node-kill:0@1s"), HasSubstr("nodes from 1 to 15"));
  EXPECT_THAT(error_of("node-kill:@1s"), HasSubstr("nodes from 1 to 15"));
  EXPECT_THAT(error_of("node-kill:2x@1s"), HasSubstr("nodes from 1 to 15"));
  for (const char* share : {"", "0", "1.1", "nan", "-0.5", "half"}) {
    EXPECT_THAT(error_of(std::string("partition:") + share + "@1s"), HasSubstr("up to 1")) << share;
  }
  EXPECT_THAT(error_of("client-pause@1s"), HasSubstr("client-pause:2s"));
  EXPECT_THAT(error_of("client-pause:2s@1s+1s"), HasSubstr("before the @: client-pause:2s@1s"));
  EXPECT_THAT(error_of("client-kill:1@1s"), HasSubstr("client-kill takes no parameter"));
  EXPECT_THAT(error_of("delay@1s"), HasSubstr("delay:5ms"));
  EXPECT_THAT(error_of("delay:0s@1s"), HasSubstr("delay:5ms"));
}

std::vector<Fault> faults(std::initializer_list<const char*> texts) {
  std::vector<Fault> faults;
  for (const char* text : texts) faults.push_back(parse_fault(text).value());
  return faults;
}

TEST(Timetable, IsInTheOrderOfTimeAndFitsIntoTheRun) {
  const auto table = timetable(faults({"store-kill@2s+1s", "failover@1s", "delay:1ms@3s"}), 4s);
  ASSERT_TRUE(table) << table.error();
  EXPECT_EQ(table->at(0).what, "failover");
  EXPECT_EQ(table->at(1).what, "store-kill");
  EXPECT_EQ(table->at(2).what, "delay:1ms");
  EXPECT_TRUE(timetable({}, 1s));
  EXPECT_TRUE(timetable(faults({"store-kill@0s+3s"}), 3s));
  const auto refusal = [](std::initializer_list<const char*> texts) {
    return timetable(faults(texts), 3s).error();
  };
  EXPECT_EQ(refusal({"store-kill@3s"}),
            "store-kill@3s would start after the end of the run, which takes 3s");
  EXPECT_EQ(refusal({"store-kill@2s+2s"}),
            "store-kill@2s+2s would last longer than the run, which takes 3s");
  EXPECT_THAT(refusal({"store-kill@1s+1s", "delay:1ms@1500ms"}),
              HasSubstr("delay:1ms@1500ms would start while store-kill@1s+1s is in force"));
  EXPECT_THAT(refusal({"store-kill@1s", "delay:1ms@2s"}), HasSubstr("must not overlap"));
}

}  // namespace
}  // namespace lockbench::loadgen

#include "loadgen/record/recorder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "loadgen/record/memory.h"
#include "loadgen/record/metrics.h"
#include "loadgen/run/worker.h"
#include "strategies/observer.h"
#include "tests/support/run_shared.h"
#include "tests/support/sim_env.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

Counts counts(Count what, std::uint64_t value) {
  Counts made;
  made[what] = value;
  return made;
}

TEST(Recorder, CanBeReadWhileManyThreadsWrite) {
  constexpr int kClients = 4;
  constexpr std::uint64_t kSections = 10'000, kAll = kClients * kSections;
  Recorder recorder(kClients, 5);
  {
    std::vector<std::jthread> clients;
    clients.reserve(kClients);
    for (int number = 0; number < kClients; ++number) {
      clients.emplace_back([&recorder, number] {
        for (std::uint64_t i = 0; i < kSections; ++i) {
          recorder.histograms(Phase::measured)[Timing::acquired].record(1us);
          recorder.vote(Phase::measured, static_cast<int>(i % 5), Vote::granted, 1us);
          recorder.round(Phase::measured, i % 2 == 0, 1s);
          recorder.replicas_waited(Phase::measured, 1us, i % 2, 1);
          recorder.client(number).state = ClientState::holding;
          recorder.client(number).add(Phase::measured, counts(Count::sections, 1));
        }
      });
    }
    Counts last;
    std::uint64_t last_outcomes = 0;
    while (last[Count::sections] < kAll) {
      const Counts now = recorder.totals(Phase::measured);
      const auto outcomes = recorder.outcome_count(Phase::measured, AcquireOutcome::acquired);
      ASSERT_GE(now[Count::sections], last[Count::sections]);
      ASSERT_GE(outcomes, last_outcomes);
      recorder.clients_in(ClientState::holding);
      last = now;
      last_outcomes = outcomes;
    }
  }
  const Counts totals = recorder.totals(Phase::measured);
  EXPECT_EQ(recorder.outcome_count(Phase::measured, AcquireOutcome::acquired), kAll);
  EXPECT_EQ(totals[Count::quorum_rounds], kAll);
  EXPECT_EQ(totals[Count::split_votes], kAll / 2);
  EXPECT_EQ(totals[Count::replica_refusals], kAll / 2);
  for (const auto& node : recorder.histograms(Phase::measured).nodes) {
    EXPECT_EQ(node.count(Vote::granted), kAll / 5);
    EXPECT_EQ(node.taken_by(Vote::granted).snapshot().count(), kAll / 5);
  }
}

TEST(Recorder, CountsTheFailuresOfManyThreadsWhileTheyAreRead) {
  constexpr std::uint64_t kTimes = 5000;
  constexpr int kThreads = 4, kMessages = 20;
  Recorder recorder(1);
  std::atomic<int> at_work{kThreads};
  {
    std::vector<std::jthread> clients;
    clients.reserve(kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      clients.emplace_back([&, thread] {
        for (std::uint64_t i = 0; i < kTimes; ++i) {
          // One message is everybody's.
          const std::uint64_t number = i % 2 == 0 ? 0 : (i + static_cast<unsigned>(thread));
          recorder.failure(fmt::format("h:{}: no answer within 3s", number % kMessages));
        }
        --at_work;
      });
    }
    while (at_work > 0) {
      const std::string latest = recorder.latest_failures()[FailureReason::timeout];
      EXPECT_TRUE(latest.empty() || latest.ends_with("no answer within 3s")) << latest;
      EXPECT_LE(recorder.failures().size(), 17U);
    }
  }
  const auto counts = recorder.failure_counts();
  EXPECT_EQ(counts.size(), 17U) << "each once, and the rest as one";
  std::uint64_t sum = 0;
  for (const auto& [message, times] : counts) sum += times;
  EXPECT_EQ(sum, kThreads * kTimes);
  EXPECT_GE(counts.at("h:0: no answer within 3s"), kThreads * kTimes / 2);
}

TEST(Recorder, AMarginThatWasUsedUpIsNone) {
  Recorder recorder(1);
  recorder.renewal(Phase::measured,
                   {.outcome = RenewalAnswer::renewed, .slip = -1ns, .margin = -5ms});
  const auto& measured = recorder.histograms(Phase::measured);
  EXPECT_EQ(measured[Timing::renewal_margin].snapshot().count(), 1U);
  EXPECT_EQ(measured[Timing::renewal_margin].snapshot().max, 0ms);
  EXPECT_EQ(measured[Timing::renewal_slip].snapshot().max, 0ms);
}

TEST(Recorder, ListsFailuresTheMostFrequentFirstAndKeepsNotEveryOne) {
  Recorder recorder(1);
  EXPECT_TRUE(recorder.failures().empty());
  for (int i = 0; i < 3; ++i) recorder.failure("now and then");
  for (int i = 0; i < 999; ++i) recorder.failure("failure " + std::to_string(i));
  for (int i = 0; i < 5; ++i) recorder.failure("failure 0");
  const auto failures = recorder.failures();
  EXPECT_EQ(failures.size(), 17U);
  EXPECT_EQ(failures[0], "984 × other failures");
  EXPECT_EQ(failures[1], "6 × failure 0");
  EXPECT_EQ(failures[2], "3 × now and then");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(recorder.failure("h:1: OOM command"), FailureReason::oom) << "also beyond the list";
    EXPECT_EQ(recorder.failure("now and then"), FailureReason::other);
  }
  EXPECT_EQ(recorder.latest_failures()[FailureReason::oom], "h:1: OOM command");
  EXPECT_EQ(recorder.latest_failures()[FailureReason::other], "now and then");
}

/// A run whose load began at 1 s, whose warm-up ends at 2 s and which ends at 5 s.
class ServiceRecordingTest : public testing::Test {
 protected:
  ServiceRecordingTest() {
    run_.load_start = origin_ + 1s;
    run_.measure_start = origin_ + 2s;
    run_.measure_end = origin_ + 5s;
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
  auto& observer = run_.services.get<StrategyObserver>();
  begin();
  for (const Duration time : {1500ms, 1999ms, 2000ms, 4999ms, 5000ms, 6000ms}) {
    move_to(time);
    command();
    renewal();
    observer.on_vote(1, Vote::granted, 2ms, false);
    observer.on_vote(2, Vote::refused, 3ms, true);
    observer.on_round(true, 9s);
    observer.on_acknowledged(4ms, 1, 2);
  }
  for (const Phase phase : kPhases) {
    for (const Count each :
         {Count::commands, Count::renewals, Count::split_votes, Count::replica_refusals}) {
      EXPECT_EQ(counts(phase)[each], 2U);
    }
    const auto& seen = run_.recorder.histograms(phase);
    EXPECT_EQ(seen.nodes[1].count(Vote::granted), 2U);
    EXPECT_EQ(seen.nodes[1].taken_by(Vote::granted).snapshot().sum, 4ms);
    EXPECT_EQ(seen.nodes[2].count(Vote::refused), 2U) << "late ones too";
    EXPECT_EQ(seen.nodes[2].taken_by(Vote::refused).snapshot().count(), 0U);
    EXPECT_EQ(seen[Timing::quorum_validity].snapshot().count(), 2U);
    EXPECT_EQ(seen[Timing::replica_wait].snapshot().sum, 8ms);
  }
}

TEST_F(ServiceRecordingTest, BeforeAnyLoadNothingIsMeasured) {
  move_to(3s);  // the times are not set yet
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

void record(ClientWaits& waits, int client, int times, Duration wait) {
  for (int i = 0; i < times; ++i) waits.record(client, wait, false);
}

TEST(ClientWaits, AClientWithManyGrantsWeighsAsMuchAsOneWithFew) {
  ClientWaits waits(3);
  record(waits, 0, 10'000, 1ms);
  record(waits, 1, 10, 1s);
  record(waits, 2, 10, 1s);
  const auto figures = waits.by_client();
  ASSERT_TRUE(figures);
  // Over all waits, percentiles up to the 99th would be 1 ms.
  EXPECT_NEAR(figures->p50, 1, 0.04);
  EXPECT_NEAR(figures->worst_p99, 1, 0.04);
  EXPECT_TRUE(figures->worst_is_longest) << "ten waits have no p99";
  EXPECT_THAT(figures->at_least, IsEmpty());
  record(waits, 1, 90, 1s);
  record(waits, 2, 90, 1s);
  EXPECT_FALSE(waits.by_client()->worst_is_longest);
}

TEST(ClientWaits, WaitsThatWereCutOffAreLowerBounds) {
  ClientWaits waits(2);
  record(waits, 0, 1000, 1ms);
  record(waits, 1, 1, 1ms);
  waits.record(1, 3s, true);
  const auto figures = waits.by_client();
  EXPECT_NEAR(figures->worst_p99, 3, 0.1);
  EXPECT_THAT(figures->at_least, Contains("worst_p99"));
  EXPECT_THAT(figures->at_least, Contains("p99"));
  EXPECT_THAT(figures->at_least, testing::Not(Contains("p50")));
  ClientWaits even(1);
  record(even, 0, 1000, 10ms);
  even.record(0, 4ms, true);
  EXPECT_THAT(even.by_client()->at_least, IsEmpty()) << "one at the end changes nothing";
}

TEST(ClientWaits, ClientsWithoutWaitsDoNotCount) {
  EXPECT_EQ(ClientWaits(0).by_client(), std::nullopt);
  ClientWaits waits(2);
  EXPECT_EQ(waits.by_client(), std::nullopt);
  record(waits, 1, 5, 2ms);
  EXPECT_NEAR(waits.by_client()->p50, 0.002, 1e-4);
}

TEST(ClientWaits, OfNoTimeAndOfMoreThanAnHourHaveAPlace) {
  ClientWaits waits(2);
  waits.record(0, 0ns, false);
  waits.record(1, 2h, false);
  EXPECT_NEAR(waits.by_client()->worst_p99, 3600, 120);
  EXPECT_NEAR(waits.by_client()->p50, 0, 1e-9);
}

struct Counted {
  Counted() { ++made; }
  int value = 0;
  static inline int made = 0;
};

constexpr int kMany = 10'000'000;

std::vector<std::pair<int, int>> values_of(const PerKey<Counted>& states) {
  std::vector<std::pair<int, int>> values;
  states.for_each([&](int key, const Counted& state) {
    if (state.value != 0) values.emplace_back(key, state.value);
  });
  return values;
}

TEST(PerKey, FindsEachKeysStateAgain) {
  for (const int keys : {7, kMany}) {
    PerKey<Counted> states(keys);
    EXPECT_THAT(values_of(states), IsEmpty());
    states[keys - 1].value = 3;
    states[0].value = 1;
    states[5].value = 2;
    ++states[keys - 1].value;
    EXPECT_THAT(values_of(states), ElementsAre(Pair(0, 1), Pair(5, 2), Pair(keys - 1, 4)));
    ASSERT_NE(states.find(5), nullptr);
    EXPECT_EQ(states.find(5)->value, 2);
  }
}

TEST(PerKey, MakesOfManyOnlyThoseThatAreUsed) {
  Counted::made = 0;
  PerKey<Counted> states(kMany);
  EXPECT_EQ(Counted::made, 0);
  EXPECT_EQ(states.find(kMany - 1), nullptr);
  for (int key = 0; key < kMany; key += kMany / 10) states[key].value = 1;
  EXPECT_EQ(states.find(kMany - 1), nullptr);
  EXPECT_LE(Counted::made, 1024) << "in groups";
  EXPECT_EQ(values_of(states).size(), 10U);
}

TEST(PerKey, ThreadsThatUseAKeyFirstShareItsState) {
  constexpr int kKeys = 100'000, kThreads = 4, kUsed = 5000;
  struct Count {
    std::atomic<int> uses{0};
  };
  PerKey<Count> states(kKeys);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int key = 0; key < kUsed; ++key) ++states[key * 19].uses;
      });
    }
  }
  int used = 0;
  states.for_each([&](int, const Count& count) {
    ++used;
    EXPECT_EQ(count.uses, kThreads);
  });
  EXPECT_EQ(used, kUsed);
}

TEST(FailureReason, OfARefusalIsKeptButIsNoFailure) {
  Recorder recorder(1, 0);
  recorder.refusal("h:1: too few replicas acknowledged");
  EXPECT_EQ(recorder.latest_failures()[FailureReason::refused],
            "h:1: too few replicas acknowledged");
  EXPECT_TRUE(recorder.failures().empty());
  // However many failures there are, each reason has its latest message.
  for (int i = 0; i < 99; ++i) recorder.failure("failure " + std::to_string(i));
  recorder.refusal("h:1: 0 of 2 replicas acknowledged");
  recorder.failure("h:1: LOADING");
  recorder.failure("failure 0");
  EXPECT_EQ(recorder.latest_failures()[FailureReason::refused],
            "h:1: 0 of 2 replicas acknowledged");
  EXPECT_EQ(recorder.latest_failures()[FailureReason::busy], "h:1: LOADING");
  EXPECT_EQ(recorder.latest_failures()[FailureReason::other], "failure 0");
  recorder.refusal("h:1: too few replicas acknowledged");
  EXPECT_EQ(recorder.latest_failures()[FailureReason::refused],
            "h:1: too few replicas acknowledged");
}

TEST(FailureReason, IsSaidByTheStoresInTheirOwnWords) {
  const auto expect = [](FailureReason reason, std::initializer_list<const char*> messages) {
    for (const char* message : messages) {
      EXPECT_EQ(info_of(reason_of(message)).name, info_of(reason).name) << message;
    }
  };
  expect(FailureReason::oom,
         {"h:1: OOM command not allowed when used memory > 'maxmemory'.",
          "h:1: etcdserver: mvcc: database space exceeded", "h:1: ERROR: out of memory"});
  expect(FailureReason::readonly, {"h:1: READONLY You can't write against a read only replica.",
                                   "h:1: ERROR: cannot execute INSERT in a read-only transaction",
                                   "h:1: the server that the sentinels name as master is a replica",
                                   "h:1: MISCONF Redis is configured to save RDB snapshots",
                                   "h:1: NOREPLICAS Not enough good replicas to write."});
  expect(FailureReason::auth,
         {"h:1: NOAUTH Authentication required.", "h:1: AUTH was refused: WRONGPASS",
          "h:1: NOPERM this user has no permissions to run the 'set' command",
          "h:1: FATAL: password authentication failed for user \"u\"",
          "h:1: etcdserver: permission denied", "h:1: not authenticated",
          "h:1: \"CLIENT_ERROR unauthenticated\"", "h:1: its certificate has expired"});
  expect(FailureReason::busy, {"h:1: LOADING Redis is loading the dataset in memory",
                               "h:1: BUSY Redis is busy running a script.",
                               "h:1: FATAL: the database system is starting up"});
  expect(FailureReason::timeout, {"h:1: no answer within 300ms", "h:1: no connection within 3s",
                                  "3 of 5 nodes failed: h:1: no answer within 50ms"});
  expect(FailureReason::refused,
         {"h:1: a transaction pooler gives one connection's statements to different processes"});
  expect(
      FailureReason::unreachable,
      {"h:1: Connection refused", "h:1: the connection was closed",
       "no sentinel knows the master; h:1: it does not watch m", "h:1: connection loss",
       "h:1: the server does not speak TLS",
       "h:1: its name cannot be looked up: Name or service not known",
       "h:1: ERR max number of clients reached", "h:1: FATAL:  sorry, too many clients already"});
  expect(FailureReason::other, {"h:1: ERR unknown command", ""});
}

}  // namespace
}  // namespace lockbench::loadgen

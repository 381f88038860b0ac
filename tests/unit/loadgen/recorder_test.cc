#include "loadgen/record/recorder.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

Counts counts(Count what, std::uint64_t value) {
  Counts made;
  made[what] = value;
  return made;
}

TEST(Recorder, CountsPerClientAndPhase) {
  Recorder recorder(2);
  recorder.client(0).add(Phase::unmeasured, counts(Count::sections, 1));
  recorder.client(0).add(Phase::measured, counts(Count::sections, 10));
  recorder.client(1).add(Phase::measured, counts(Count::sections, 100));
  recorder.client(1).add(Phase::measured, counts(Count::sections, 1000));
  recorder.client(1).add(Phase::measured, counts(Count::commands, 7));

  EXPECT_EQ(recorder.client_count(), 2);
  EXPECT_EQ(recorder.client(0).counts(Phase::measured)[Count::sections], 10U);
  EXPECT_EQ(recorder.client(1).counts(Phase::measured)[Count::sections], 1100U);
  EXPECT_EQ(recorder.totals(Phase::unmeasured)[Count::sections], 1U);
  EXPECT_EQ(recorder.totals(Phase::measured)[Count::sections], 1110U);
  EXPECT_EQ(recorder.totals(Phase::measured)[Count::commands], 7U);
  EXPECT_EQ(recorder.totals(Phase::unmeasured)[Count::commands], 0U);
}

TEST(Recorder, ASingleCountIsSummedOverClientsServicesAndPhases) {
  Recorder recorder(2);
  for (const Phase phase : kPhases) {
    recorder.client(0).add(phase, counts(Count::commands, 1));
    recorder.client(1).add(phase, counts(Count::commands, 10));
    recorder.client(1).add(phase, counts(Count::sections, 7));
    recorder.add(phase, Count::commands, 100);
    recorder.add(phase, Count::renewals, 5);
  }
  EXPECT_EQ(recorder.total(Count::commands), 333U);
  EXPECT_EQ(recorder.total(Count::sections), 21U);
  EXPECT_EQ(recorder.total(Count::renewals), 15U) << "clients have none";
}

TEST(Recorder, OneCountIsAddedByItself) {
  Recorder recorder(1);
  recorder.client(0).add(Phase::measured, counts(Count::sections, 2));
  recorder.client(0).add(Phase::measured, Count::sections);
  EXPECT_EQ(recorder.client(0).counts(Phase::measured)[Count::sections], 3U);
}

TEST(Recorder, CanBeReadWhileItIsWritten) {
  constexpr int kClients = 4;
  constexpr std::uint64_t kSections = 20'000;
  Recorder recorder(kClients);
  {
    std::vector<std::jthread> clients;
    clients.reserve(kClients);
    for (int number = 0; number < kClients; ++number) {
      clients.emplace_back([&recorder, number] {
        for (std::uint64_t i = 0; i < kSections; ++i) {
          recorder.histograms(Phase::measured)[Timing::acquired].record(1us);
          recorder.client(number).add(Phase::measured, counts(Count::sections, 1));
          recorder.client(number).state = ClientState::holding;
        }
      });
    }
    Counts last;
    std::uint64_t last_outcomes = 0;
    while (last[Count::sections] < kClients * kSections) {
      const Counts now = recorder.totals(Phase::measured);
      const auto outcomes = recorder.outcome_count(Phase::measured, AcquireOutcome::acquired);
      ASSERT_GE(now[Count::sections], last[Count::sections]);
      ASSERT_GE(outcomes, last_outcomes);
      ASSERT_LE(outcomes, kClients * kSections);
      recorder.clients_in(ClientState::holding);
      last = now;
      last_outcomes = outcomes;
    }
  }
  EXPECT_EQ(recorder.totals(Phase::measured)[Count::sections], kClients * kSections);
  EXPECT_EQ(recorder.outcome_count(Phase::measured, AcquireOutcome::acquired),
            kClients * kSections);
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

TEST(Recorder, ALateVoteCountsButNobodyKnowsHowLongItTook) {
  Recorder recorder(1, 1);
  recorder.vote(Phase::measured, 0, Vote::granted, 1ms);
  recorder.vote(Phase::measured, 0, Vote::granted, 10s, true);
  const auto& node = recorder.histograms(Phase::measured).nodes[0];
  EXPECT_EQ(node.count(Vote::granted), 2U);
  EXPECT_EQ(node.taken_by(Vote::granted).snapshot().count(), 1U);
  EXPECT_EQ(node.taken_by(Vote::granted).snapshot().max, 1ms);
  EXPECT_THROW(recorder.vote(Phase::measured, 1, Vote::granted, 1ms), std::out_of_range);
}

TEST(Recorder, ServicesOfManyThreadsAreCounted) {
  constexpr int kThreads = 4, kVotesOfEach = 5'000;
  Recorder recorder(1, 5);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&recorder] {
        for (int n = 0; n < kVotesOfEach; ++n) {
          recorder.vote(Phase::measured, n % 5, Vote::granted, 1us);
          recorder.round(Phase::measured, n % 2 == 0, 1s);
          recorder.replicas_waited(Phase::measured, 1us, n % 2, 1);
          recorder.add(Phase::measured, Count::commands);
        }
      });
    }
  }
  std::uint64_t votes = 0;
  for (const auto& node : recorder.histograms(Phase::measured).nodes) {
    votes += node.count(Vote::granted);
    EXPECT_EQ(node.taken_by(Vote::granted).snapshot().count(), node.count(Vote::granted));
  }
  EXPECT_EQ(votes, kThreads * kVotesOfEach);
  EXPECT_EQ(recorder.totals(Phase::measured)[Count::commands], kThreads * kVotesOfEach);
  EXPECT_EQ(recorder.totals(Phase::measured)[Count::quorum_rounds], kThreads * kVotesOfEach);
  EXPECT_EQ(recorder.totals(Phase::measured)[Count::split_votes], kThreads * kVotesOfEach / 2);
  EXPECT_EQ(recorder.totals(Phase::measured)[Count::replica_refusals], kThreads * kVotesOfEach / 2);
}

TEST(Recorder, ListsFailuresTheMostFrequentFirst) {
  Recorder recorder(1);
  EXPECT_TRUE(recorder.failures().empty());
  recorder.failure("rare");
  for (int i = 0; i < 12; ++i) recorder.failure("frequent");
  for (int i = 0; i < 3; ++i) recorder.failure("now and then");
  EXPECT_EQ(recorder.failures(),
            (std::vector<std::string>{"12 × frequent", "3 × now and then", "1 × rare"}));
}

TEST(Recorder, DoesNotKeepEveryFailureThereIs) {
  Recorder recorder(1);
  for (int i = 0; i < 1000; ++i) recorder.failure("failure " + std::to_string(i));
  for (int i = 0; i < 5; ++i) recorder.failure("failure 0");
  const auto failures = recorder.failures();
  EXPECT_EQ(failures.size(), 17U);
  EXPECT_EQ(failures[0], "984 × other failures");
  EXPECT_EQ(failures[1], "6 × failure 0");
}

}  // namespace
}  // namespace lockbench::loadgen

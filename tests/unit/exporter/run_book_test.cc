#include "exporter/run_book.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/run_shared.h"

namespace lockbench::exporter {
namespace {

using namespace std::chrono_literals;

constexpr auto kAcquired = static_cast<std::size_t>(AcquireOutcome::acquired);
constexpr auto kFailed = static_cast<std::size_t>(AcquireOutcome::failed);

class RunBookTest : public testing::Test {
 protected:
  Account account(std::size_t number = 0) const { return book_.accounts().at(number); }
  std::uint64_t sections() const { return account().totals.counts[loadgen::Count::sections]; }

  const Descriptor first_{.name = "first", .backend = "store"};
  const Descriptor second_{.name = "second", .backend = "store"};
  RunBook book_{{&first_, &second_}};
  test::RunUnderTest run_{first_};
};

TEST_F(RunBookTest, KnowsEveryStrategyFromTheStart) {
  ASSERT_EQ(book_.accounts().size(), 2U);
  EXPECT_EQ(account(1).strategy, &second_);
  EXPECT_EQ(account(1).totals.acquire[kAcquired].count(), 0U);
  EXPECT_EQ(account(1).present.clients, 0);
}

TEST_F(RunBookTest, SeesARunThatIsUnderWay) {
  run_.workload().rate = 50;
  book_.run_begins(run_.shared());
  run_.grant(1ms);
  run_.recorder().client(0).state = loadgen::ClientState::holding;
  run_.recorder().client(1).state = loadgen::ClientState::waiting;
  EXPECT_EQ(sections(), 1U);
  const Account seen = account();
  EXPECT_EQ(seen.totals.acquire[kAcquired].count(), 1U);
  EXPECT_EQ(seen.present.holders, 1U);
  EXPECT_EQ(seen.present.waiters, 1U);
  EXPECT_EQ(seen.present.clients, 2);
  EXPECT_EQ(seen.present.target_sections_per_second, 50);
  EXPECT_DOUBLE_EQ(seen.present.jain, 0.5);
  book_.run_ends(run_.shared(), nullptr);
}

TEST_F(RunBookTest, CountsTheWarmUpButNotWhatTheEndGranted) {
  book_.run_begins(run_.shared());
  run_.grant(1ms, loadgen::Phase::unmeasured);
  run_.grant(1ms, loadgen::Phase::measured);
  run_.grant(1ms, loadgen::Phase::ending);
  EXPECT_EQ(sections(), 2U);
  EXPECT_EQ(account().totals.acquire[kAcquired].count(), 2U);
  book_.run_ends(run_.shared(), nullptr);
}

TEST_F(RunBookTest, TheAuditSpansTheWholeRun) {
  for (const loadgen::Phase phase : loadgen::kPhases)
    run_.add(loadgen::Count::stale_rejected, 1, phase);
  for (const int client : {0, 1}) {
    run_.shared().audit.enter(0, client, Mode::exclusive, {}, {}, TimePoint::clock::now());
  }
  book_.run_begins(run_.shared());
  EXPECT_EQ(account().totals.stale_rejected, 3U);
  EXPECT_EQ(account().totals.overlaps, 1U);
  results::Run result;
  result.audit.lost_updates = 7;
  EXPECT_EQ(account().totals.lost_updates, 0U);
  book_.run_ends(run_.shared(), &result);
  EXPECT_EQ(account().totals.lost_updates, 7U);
}

TEST_F(RunBookTest, OneRunAddsToAnother) {
  for (int i = 1; i <= 3; ++i) {
    test::RunUnderTest run(first_);
    book_.run_begins(run.shared());
    run.grant(1ms);
    run.recorder().service_command(loadgen::Phase::measured);
    EXPECT_EQ(sections(), static_cast<std::uint64_t>(i));
    book_.run_ends(run.shared(), nullptr);
    EXPECT_EQ(sections(), static_cast<std::uint64_t>(i));
  }
  EXPECT_EQ(account().totals.services.commands, 3U);
  EXPECT_EQ(account().present.clients, 0);
  EXPECT_EQ(account(1).totals.counts[loadgen::Count::sections], 0U);
}

TEST_F(RunBookTest, RunsOfSeveralStrategiesMayBeUnderWayAtOnce) {
  test::RunUnderTest other(second_);
  book_.run_begins(run_.shared());
  book_.run_begins(other.shared());
  run_.grant(1ms);
  other.grant(1ms);
  other.grant(1ms);
  EXPECT_EQ(account(0).totals.counts[loadgen::Count::sections], 1U);
  EXPECT_EQ(account(1).totals.counts[loadgen::Count::sections], 2U);
  book_.run_ends(run_.shared(), nullptr);
  book_.run_ends(other.shared(), nullptr);
}

TEST_F(RunBookTest, AStoreThatWasNotReachedIsAFailure) {
  book_.not_connected(first_, 2s);
  EXPECT_EQ(account().totals.acquire[kFailed].count(), 1U);
  EXPECT_DOUBLE_EQ(account().totals.acquire[kFailed].sum_seconds(), 2);
}

TEST_F(RunBookTest, FaultsComeAndGo) {
  constexpr auto kFault = loadgen::FaultKind::failover;
  constexpr auto kPlace = static_cast<std::size_t>(kFault);
  const Descriptor unknown{.name = "unknown", .backend = "store"};
  test::RunUnderTest other{unknown};
  book_.fault_changes(run_.shared(), kFault, true);
  book_.fault_changes(other.shared(), loadgen::FaultKind::store_kill, true);
  EXPECT_TRUE(account().present.faults[kPlace]);
  EXPECT_FALSE(account().present.faults[0]);
  EXPECT_FALSE(account(1).present.faults[kPlace]);
  book_.fault_changes(run_.shared(), kFault, false);
  EXPECT_FALSE(account().present.faults[kPlace]);
}

TEST_F(RunBookTest, CountersNeverGoBackWhileRunsComeAndGo) {
  constexpr int kRuns = 20, kGrants = 500;
  std::atomic<bool> over{false};
  std::jthread reader([&] {
    std::uint64_t last = 0;
    while (!over) {
      const std::uint64_t now = sections();
      EXPECT_GE(now, last);
      last = now;
    }
  });
  for (int i = 0; i < kRuns; ++i) {
    test::RunUnderTest run(first_);
    book_.run_begins(run.shared());
    for (int n = 0; n < kGrants; ++n) run.grant(1us);
    book_.run_ends(run.shared(), nullptr);
  }
  over = true;
  reader.join();
  EXPECT_EQ(sections(), static_cast<std::uint64_t>(kRuns * kGrants));
}

}  // namespace
}  // namespace lockbench::exporter

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "loadgen/run/run_stores.h"
#include "strategies/store.h"
#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The removals from the stores of these tests.
struct Removals {
  std::vector<std::string> keys, runs, begun, ended;
  std::function<void()> before;  ///< called before each removal
  bool fails = false, refuses_notes = false;
  int of_old_runs = 0;
  std::string old_run_stays{};  ///< why
  WallTime until{};
};
Removals removals;
std::optional<double> cpu_seconds;  ///< used by their server

class NotingStore : public Store {
 public:
  std::string display() const override { return "noting:1"; }
  StoreResult<void> reach(const std::stop_token&) override { return {}; }
  StoreResult<StoreFacts> facts() override {
    return StoreFacts{.version = "1", .instance = "1", .cpu_seconds = cpu_seconds};
  }
  StoreResult<void> begin_keys(std::string_view prefix, WallTime until,
                               const std::stop_token&) override {
    removals.begun.emplace_back(prefix);
    removals.until = until;
    if (!removals.refuses_notes) return {};
    return tl::unexpected(StoreError{StoreError::Kind::rejected, "noting:1: may not ZADD"});
  }
  StoreResult<void> end_keys(std::string_view prefix, const std::stop_token&) override {
    removals.ended.emplace_back(prefix);
    return {};
  }
  StoreResult<void> remove_old_runs(const std::stop_token&) override {
    ++removals.of_old_runs;
    if (removals.old_run_stays.empty()) return {};
    return tl::unexpected(StoreError{StoreError::Kind::rejected, removals.old_run_stays});
  }
  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys,
                                       const std::stop_token& stop) override {
    if (auto able = begin(stop); !able) return tl::unexpected(able.error());
    removals.keys.insert(removals.keys.end(), keys.begin(), keys.end());
    return keys.size();
  }
  StoreResult<std::size_t> remove_run(std::string_view run_id,
                                      const std::stop_token& stop) override {
    if (auto able = begin(stop); !able) return tl::unexpected(able.error());
    removals.runs.emplace_back(run_id);
    return 1;
  }

 private:
  StoreResult<void> begin(const std::stop_token& stop) {
    if (removals.before) removals.before();
    if (stop.stop_requested()) return removal_stopped(display());
    if (!removals.fails) return {};
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, "noting:1: told to fail"});
  }
};

StoreKind kind(std::string_view name, Listing listing) {
  return {.name = name,
          .value_name = "URL",
          .help = "",
          .listing = listing,
          .display = [](const std::string& url) -> StoreKind::Text { return url; },
          .make = [](const std::string&, Duration) -> std::unique_ptr<Store> {
            return std::make_unique<NotingStore>();
          }};
}
const StoreRegistration scanned_kind(kind("scanned", Listing::by_scan));
const StoreRegistration together_kind(kind("together", Listing::by_prefix));

class CleaningTest : public LiveRunTest {
 protected:
  CleaningTest() {
    removals = {};
    cpu_seconds.reset();
    plan_.endpoints = {{"scanned", {"noting:1"}}, {"together", {"noting:1"}}};
    end_after(30);
  }

  RunReport run_on(std::string_view store) {
    Descriptor strategy = scripted("tested", behaviour_);
    strategy.backend = store;
    strategy.key_suffixes = {"", ":more"};
    strategy.program = program_;
    return run({&strategy});
  }

  Behaviour behaviour_{.acquire = [this](const Context&, const AcquireRequest& request) {
    const std::scoped_lock lock(mutex_);
    asked_.emplace(request.key);
    asked_.emplace(std::string(request.key) + ":more");
    if (asks_) asks_();
    return grant(request);
  }};
  std::mutex mutex_;
  std::set<std::string> asked_;
  std::function<void()> asks_;
  std::string_view program_;
};

TEST_F(CleaningTest, RemovesTheKeysThatWereUsedAndNoOthers) {
  plan_.workload.keys = 50'000;
  run_on("scanned");
  EXPECT_THAT(removals.keys, testing::UnorderedElementsAreArray(asked_));
  EXPECT_THAT(removals.keys, testing::Contains("lockbench:test:{tested:1:50000}"))
      << "a client's own";
  EXPECT_THAT(removals.runs, IsEmpty());
  EXPECT_THAT(watcher_.warnings, IsEmpty());
  removals = {};
  run_on("together");
  EXPECT_THAT(removals.runs, ElementsAre("test")) << "it asks once for them all";
  EXPECT_THAT(removals.keys, IsEmpty());
}

TEST_F(CleaningTest, WhatALibraryPutBesideItsKeysIsRemovedToo) {
  program_ = "node job.mjs";
  run_on("scanned");
  EXPECT_THAT(removals.runs, ElementsAre("test"));
  EXPECT_THAT(removals.keys, IsEmpty());
}

TEST_F(CleaningTest, ItsKeysAreNotedBeforeTheFirstOfThemAndUntilTheyAreRemoved) {
  const std::string prefix = "lockbench:test:{tested:1:";
  plan_.workload.duration = 2h;
  asks_ = [&] { EXPECT_THAT(removals.begun, ElementsAre(prefix)); };
  run_on("scanned");
  EXPECT_THAT(removals.ended, ElementsAre(prefix));
  EXPECT_GE(removals.until, WallTime() + 2h);
  asks_ = {};
  removals = {};
  removals.fails = true;
  run_on("scanned");
  EXPECT_THAT(removals.ended, IsEmpty()) << "a later run will remove them";
  removals = {};
  removals.refuses_notes = true;
  run_on("scanned");
  EXPECT_THAT(removals.ended, IsEmpty());
  EXPECT_THAT(watcher_.warnings.back(),
              AllOf(HasSubstr("may not ZADD"), HasSubstr("lockbench clean --run test")));
  removals = {};
  plan_.servers_stay = [](const Descriptor&) { return false; };
  run_on("scanned");
  EXPECT_THAT(removals.begun, IsEmpty()) << "they end with their servers";
}

TEST_F(CleaningTest, WhatAnOldRunLeftIsNotBlamedOnThisOne) {
  removals.old_run_stays = "keys of run old are left";
  run_on("scanned");
  EXPECT_EQ(removals.of_old_runs, 1);
  EXPECT_THAT(watcher_.warnings, ElementsAre("keys of run old are left"));
  removals = {};
  stop_.request_stop();
  run_on("scanned");
  EXPECT_EQ(removals.of_old_runs, 0) << "a user waits for the end";
}

TEST_F(CleaningTest, IsDoneAfterAStop) {
  plan_.workload.duration = 60s;
  asks_ = [this, left = 20]() mutable {
    if (--left == 0) stop_.request_stop();
  };
  run_on("scanned");
  EXPECT_THAT(removals.keys, testing::UnorderedElementsAreArray(asked_));
  EXPECT_THAT(watcher_.warnings, IsEmpty());
}

TEST_F(CleaningTest, IsEndedByAStopAndNamesWhatRemovesTheRest) {
  removals.before = [this] { stop_.request_stop(); };
  run_on("scanned");
  EXPECT_THAT(watcher_.warnings,
              ElementsAre(AllOf(HasSubstr("keys of tested"), HasSubstr("lockbench:test:"),
                                HasSubstr("noting:1: stopped"),
                                HasSubstr("lockbench clean --run test --scanned URL"))));
}

TEST_F(CleaningTest, IsDoneAfterARunThatCouldNotStart) {
  // The first client uses its key; the second one cannot connect.
  std::atomic<int> connected{0};
  behaviour_.connect = [&](const Context&) -> StoreResult<void> {
    if (connected++ == 0) return {};
    return tl::unexpected(StoreError{StoreError::Kind::not_sent, "no more"});
  };
  EXPECT_EQ(run_on("scanned").not_started.size(), 1U);
  EXPECT_THAT(removals.keys, testing::UnorderedElementsAreArray(asked_));
}

TEST_F(CleaningTest, SaysNothingOfServersThatEndAnyway) {
  removals.fails = true;
  plan_.servers_stay = [](const Descriptor&) { return false; };
  run_on("scanned");
  EXPECT_THAT(watcher_.warnings, IsEmpty());
  plan_.servers_stay = {};
  run_on("together");
  EXPECT_THAT(watcher_.warnings, ElementsAre(HasSubstr("told to fail")));
}

TEST_F(CleaningTest, WhatTheServersDoAfterTheLoadIsNoCostOfASection) {
  plan_.endpoints = {{"scanned", {"noting:1"}}};
  cpu_seconds = 0;
  plan_.before_load = [] { *cpu_seconds += 10; };
  plan_.after_load = [] { *cpu_seconds += 1000; };
  end_after(20);
  const RunReport report = run_on("scanned");
  ASSERT_EQ(report.runs.size(), 1U);
  EXPECT_DOUBLE_EQ(report.runs[0].server_cpu_seconds_per_section.value(), 0.5);
}

TEST(StopAfter, ComesAfterTheTimeOrWithTheOtherStop) {
  test::on_virtual_time([] {
    Carrier& carrier = Carrier::current();
    const TimePoint begun = carrier.now();
    const StopAfter stop(5s, {});
    EXPECT_EQ(carrier.wait(nullptr, begun + 1h, stop.token()), WaitResult::stopped);
    EXPECT_EQ(carrier.now() - begun, 5s);
    std::stop_source other;
    const StopAfter either(1h, other.get_token());
    EXPECT_FALSE(either.token().stop_requested());
    other.request_stop();
    EXPECT_TRUE(either.token().stop_requested());
    EXPECT_TRUE(StopAfter(1h, other.get_token()).token().stop_requested()) << "it has come before";
    EXPECT_EQ(carrier.now() - begun, 5s) << "its end waits for nothing";
  });
}

}  // namespace
}  // namespace lockbench::loadgen

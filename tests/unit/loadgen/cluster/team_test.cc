#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>

#include "loadgen/cluster/member.h"
#include "loadgen/cluster/remote_crew.h"
#include "loadgen/cluster/wire.h"
#include "strategies/registry.h"
#include "tests/support/eventually.h"
#include "tests/support/fake_redis.h"
#include "tests/support/variable.h"
#include "tests/unit/loadgen/cluster/in_process_peers.h"

namespace lockbench::loadgen::cluster {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Observer : public ProgressObserver {
 public:
  void on_progress(const Progress& progress) override {
    if (progress.phase == Progress::Phase::measuring) measuring(progress);
  }
  void on_warning(const std::string&) override {}

  std::function<void(const Progress&)> measuring = [](const Progress&) {};
};

/// Faults that do no harm.
class Harmless : public FaultTarget {
 public:
  tl::expected<void, std::string> inject(const Descriptor&, const Fault&) override { return {}; }
  tl::expected<void, std::string> heal(const Descriptor&, const Fault&) override { return {}; }
};

/// Ranks as threads of this process. Locks of a process exclude clients of one rank only.
class TeamTest : public testing::Test {
 protected:
  static constexpr int kRanks = 4;

  TeamTest() : ranks_(kRanks) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto now = [this, rank] {
        ++readings_.at(static_cast<std::size_t>(rank));
        return Carrier::current().now() + ahead_.at(static_cast<std::size_t>(rank)).load();
      };
      links_.push_back(*Link::make([this, rank] { return ranks_.rank(rank); }, now));
      hellos_.push_back({.host = "host-" + std::to_string(rank), .boot = std::to_string(rank)});
    }
    team_.hellos = hellos_;
    team_.ranks_beside.assign(kRanks, 1);
    plan_.run_id = "run";
    plan_.strategies = {find_strategy("local-mutex")};
    plan_.counter_url = "redis://127.0.0.1:1";
    plan_.workload.clients = 8;
    plan_.workload.hold = DurationDistribution::constant(1ms);
    plan_.workload.warmup = 100ms;
    plan_.workload.duration = 700ms;
    plan_.workload.resource = Resource::redis;
    plan_.workload.contended_grants = 10;
    plan_.provide_services = provide();
    plan_.make_crew = [this](const RunPlan& plan, RunShared& run, const RunTurn& turn) {
      return std::make_unique<RemoteCrew>(*links_[0], team_, plan, run, turn);
    };
  }

  std::function<void(Services&)> provide() {
    return [this](Services& services) {
      // Owned by the test, which outlives it.
      services.provide<redis::ConnectionFactory>(
          std::shared_ptr<redis::ConnectionFactory>(std::shared_ptr<void>(), &redis_));
    };
  }

  void serve_all() {
    for (int rank = 0; rank < kRanks; ++rank) {
      members_.push_back(*Thread::start(
          [this, rank](const std::stop_token& stop) {
            MemberSettings settings;
            settings.hello = hellos_[static_cast<std::size_t>(rank)];
            settings.provide_services = provide();
            if (machine_) settings.machine = machine_;
            serve(*links_[static_cast<std::size_t>(rank)], settings, stop);
          },
          [](const std::string& why) { ADD_FAILURE() << why; }));
    }
  }

  RunReport run() {
    serve_all();
    RunReport report = run_plan(plan_, observer_, stop_.get_token());
    links_[0]->send_to_all(Kind::leave, to_bytes(Leave{}));
    members_.clear();
    return report;
  }

  InProcessRanks ranks_;
  std::array<std::atomic<Duration>, kRanks> ahead_{};  ///< clocks, by rank
  std::array<std::atomic<int>, kRanks> readings_{};    ///< of the clocks
  std::function<MachineReading()> machine_;            ///< empty: the real one
  SimClock clock_;                                     ///< stands still
  redis::FakeRedis redis_{clock_};
  std::vector<Hello> hellos_;
  std::vector<std::unique_ptr<Link>> links_;
  Team team_;
  RunPlan plan_;
  Observer observer_;
  std::stop_source stop_;
  std::vector<Thread> members_;
};

TEST_F(TeamTest, TheResultIsThatOfAllRanksAndNothingIsLeft) {
  plan_.workload.key_per_client = true;
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U) << testing::PrintToString(report.not_started.size());
  const results::Run& run = report.runs.front();
  ASSERT_EQ(run.ranks.size(), static_cast<std::size_t>(kRanks));
  std::uint64_t sections = 0;
  for (const results::Rank& rank : run.ranks) {
    EXPECT_GT(rank.sections, 0U);
    EXPECT_FALSE(rank.lost);
    sections += rank.sections;
  }
  EXPECT_EQ(run.sections, sections);
  EXPECT_EQ(run.fairness.per_client.size(), 8U);
  EXPECT_EQ(std::accumulate(run.fairness.per_client.begin(), run.fairness.per_client.end(),
                            std::uint64_t{0}),
            sections);
  EXPECT_EQ(run.audit.lost_updates, 0U);
  EXPECT_EQ(run.audit.increments, run.audit.counter);
  EXPECT_EQ(run.acquire.count, run.outcomes.acquired);
  EXPECT_EQ(redis_.keys(), 0U);
}

TEST_F(TeamTest, ALockThatExcludesWithinARankOnlyIsCaught) {
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  const results::Audit& audit = report.runs.front().audit;
  EXPECT_GT(audit.lost_updates, 0U);
  EXPECT_GT(audit.overlaps, 0U);
  EXPECT_NE(audit.verdict, results::Verdict::exclusive);
}

TEST_F(TeamTest, ALoadThatIsTooHighIsJudgedForAllRanksTogether) {
  plan_.workload.rate = 20'000;
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  // A prefix would hide from others that the lock may be the reason.
  const std::vector<std::string>& reasons = report.runs.front().generator.reasons;
  const std::string late(results::kNotTheLoadAskedFor);
  EXPECT_THAT(reasons, Contains(StartsWith(late)));
  EXPECT_THAT(reasons, Not(Contains(HasSubstr(": " + late))));
}

TEST_F(TeamTest, ARankWithoutClientsTakesNoTurnsOfAnOpenLoop) {
  plan_.workload.key_per_client = true;
  plan_.workload.clients = kRanks / 2;
  plan_.workload.rate = 200;
  plan_.workload.warmup = 0ms;
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  EXPECT_GT(report.runs.front().sections, 0U);
  EXPECT_EQ(report.runs.front().ranks.back().clients, 0U);
  EXPECT_TRUE(team_.is_complete());
}

TEST_F(TeamTest, ARankThatNoticesTheEndTooLateSaysSo) {
  observer_.measuring = [this](const Progress& progress) {
    if (progress.done > 0.3) ahead_[1] = 5s;
  };
  plan_.workload.duration = 3s;
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  EXPECT_THAT(report.runs.front().generator.reasons,
              Contains(StartsWith("rank 1 on host-1: the runner noticed the end")));
}

TEST_F(TeamTest, TheFirstRankOfEachHostJudgesItsMachine) {
  hellos_[3].boot = hellos_[2].boot;
  team_.hellos = hellos_;
  std::atomic<int> readings{0};
  machine_ = [&] { return MachineReading{.throttled_seconds = 100.0 * ++readings}; };
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  const std::vector<std::string>& reasons = report.runs.front().generator.reasons;
  EXPECT_THAT(reasons, Contains(StartsWith("rank 1 on host-1: a CPU limit")));
  EXPECT_THAT(reasons, Contains(StartsWith("rank 2 on host-2: a CPU limit")));
  EXPECT_THAT(reasons, Not(Contains(StartsWith("rank 0 on host-0: a CPU limit"))));
  EXPECT_THAT(reasons, Not(Contains(StartsWith("rank 3 on host-3: a CPU limit"))));
}

TEST_F(TeamTest, FilesOfRanksGoAfterAGoodRunHoweverLongItsEndTakes) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("lockbench-team-" + std::to_string(getpid()));
  team_.partial_path = (folder / "out.json").string();
  bool had_files = false;
  plan_.run_over = [&](const results::Run&) {
    had_files = test::eventually([&] { return !std::filesystem::is_empty(folder); });
    for (auto& ahead : ahead_) ahead = 15s;
    for (auto& readings : readings_) {
      // So many that each rank has looked at the time that it still waits.
      const int enough = readings + 30;
      EXPECT_TRUE(test::eventually([&] { return readings >= enough; }));
    }
  };
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  EXPECT_TRUE(had_files);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST_F(TeamTest, ARankThatIsSilentWhileItConnectsIsLost) {
  team_.metrics_of = [this](int rank) {
    // Rank 0 has told the others by then, and a minute passes.
    if (rank == kRanks - 1) ahead_[0] = 61s;
    return std::string();
  };
  const RunReport report = run();
  ASSERT_EQ(report.not_started.size(), 1U);
  EXPECT_THAT(report.not_started.front().reason, HasSubstr("does not answer"));
  EXPECT_FALSE(team_.is_complete());
  EXPECT_FALSE(team_.kept_files);
}

TEST_F(TeamTest, ThatRecordsComeInBurstsIsNoDipOfTheThroughput) {
  Harmless target;
  plan_.fault_target = &target;
  plan_.faults = {parse_fault("delay:1ms@600ms+300ms").value()};
  plan_.workload.key_per_client = true;
  plan_.workload.rate = 1000;
  plan_.workload.duration = 2s;
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  ASSERT_EQ(report.runs.front().faults.size(), 1U);
  EXPECT_GT(report.runs.front().faults.front().lowest_share, 0);
}

TEST_F(TeamTest, ARankWithoutTheStrategySaysSo) {
  Descriptor unknown = *find_strategy("local-mutex");
  unknown.name = "of-another-build";
  plan_.strategies = {&unknown};
  team_.tickets = 5;  // of earlier orders
  const RunReport report = run();
  ASSERT_EQ(report.not_started.size(), 1U);
  EXPECT_THAT(report.not_started.front().reason,
              HasSubstr("of-another-build is not in this rank's build"));
}

TEST_F(TeamTest, TheIterationsAreSharedOut) {
  plan_.workload.key_per_client = true;
  plan_.workload.warmup = 0ms;
  plan_.workload.duration = 1h;
  plan_.workload.iterations = 101;
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  EXPECT_EQ(report.runs.front().sections, 101U);
}

TEST_F(TeamTest, ARankThatDiesHoldsUpNobodyAndItsResultsAreKept) {
  plan_.workload.key_per_client = true;
  plan_.workload.duration = 7s;
  plan_.workload.strategy.command_timeout = 500ms;
  // By then rank 2 has told of sections: those that it did after are what its files keep.
  observer_.measuring = [this](const Progress& progress) {
    if (progress.done > 0.25) ranks_.kill(2);
  };
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  const results::Run& run = report.runs.front();
  EXPECT_TRUE(run.ranks[2].lost);
  EXPECT_GT(run.ranks[2].sections, 0U);
  EXPECT_GT(run.ranks[1].sections, 2 * run.ranks[2].sections);
  EXPECT_FALSE(run.generator.valid);
  EXPECT_TRUE(team_.kept_files);
  EXPECT_EQ(run.audit.lost_updates, 0U);
}

TEST_F(TeamTest, AStopEndsTheRunSoonWithWhatThereIs) {
  plan_.workload.duration = 1h;
  observer_.measuring = [this](const Progress& progress) {
    if (progress.sections > 1000) stop_.request_stop();
  };
  const RunReport report = run();
  EXPECT_TRUE(report.interrupted);
  ASSERT_EQ(report.runs.size(), 1U);
  // Ranks that do not end soon enough count as lost; what they told before stays.
  EXPECT_GT(report.runs.front().ranks[3].sections, 0U);
}

TEST(Link, ARanksClockIsFoundHoweverFarItIsAhead) {
  InProcessRanks ranks(2);
  const auto root = Link::make([&] { return ranks.rank(0); });
  const auto other =
      Link::make([&] { return ranks.rank(1); }, [] { return Carrier::current().now() + 1h; });
  ASSERT_TRUE(root && other);
  ASSERT_TRUE(test::eventually([&] { return (*other)->clock().knows_drift(); }));
  const auto estimate = (*other)->clock().at((*other)->now());
  EXPECT_LE(std::chrono::abs(estimate.offset + 1h), estimate.bound);
  EXPECT_LT(estimate.bound, 1h);
}

TEST(Link, TheTreeOfClocksHasLogarithmicDepth) {
  for (int rank = 1; rank < 1024; ++rank) {
    int depth = 0;
    for (int at = rank; at != 0; at = parent_of(at)) ++depth;
    EXPECT_LE(depth, 10);
  }
}

TEST(Launched, OnlyALaunchersNumbersCount) {
  EXPECT_FALSE(launched());
  const test::Variable size("OMPI_COMM_WORLD_SIZE", "4");
  {
    const test::Variable rank("OMPI_COMM_WORLD_RANK", "2");
    const auto four = launched();
    ASSERT_TRUE(four);
    EXPECT_EQ(four->rank, 2);
    EXPECT_EQ(four->size, 4);
  }
  const test::Variable rank("OMPI_COMM_WORLD_RANK", "x");
  EXPECT_FALSE(launched());
}

}  // namespace
}  // namespace lockbench::loadgen::cluster

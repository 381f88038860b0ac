#include "loadgen/cluster/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "strategies/registry.h"
#include "tests/support/eventually.h"
#include "tests/support/fake_redis.h"
#include "tests/support/run_shared.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/variable.h"

namespace lockbench::loadgen::cluster {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Ranks within one process. Each may have its own thread.
class InProcessRanks {
 public:
  explicit InProcessRanks(int size) {
    for (int i = 0; i < size; ++i) boxes_->push_back(std::make_unique<Box>());
  }

  /// The peers of one rank; may outlive this.
  std::unique_ptr<Peers> rank(int rank) const { return std::make_unique<Own>(boxes_, rank); }
  /// Kills a rank: it neither sends nor receives any more.
  void kill(int rank) { boxes_->at(static_cast<std::size_t>(rank))->dead = true; }

 private:
  struct Box {
    std::mutex mutex;
    std::deque<Message> messages;
    std::atomic<bool> dead{false};
  };
  using Boxes = std::shared_ptr<std::vector<std::unique_ptr<Box>>>;

  class Own : public Peers {
   public:
    Own(Boxes boxes, int rank) : boxes_(std::move(boxes)), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(boxes_->size()); }

    void post(int to, Kind kind, std::string body) override {
      Box& box = *boxes_->at(static_cast<std::size_t>(to));
      if (own().dead || box.dead) return;
      const std::scoped_lock lock(box.mutex);
      box.messages.push_back({rank_, kind, std::move(body)});
    }

    std::optional<Message> poll() override {
      Box& box = own();
      const std::scoped_lock lock(box.mutex);
      if (box.dead || box.messages.empty()) return std::nullopt;
      Message message = std::move(box.messages.front());
      box.messages.pop_front();
      return message;
    }

    void close(bool /*together*/) override {}

   private:
    Box& own() const { return *boxes_->at(static_cast<std::size_t>(rank_)); }

    const Boxes boxes_;
    const int rank_;
  };

  Boxes boxes_ = std::make_shared<std::vector<std::unique_ptr<Box>>>();
};

class Observer : public ProgressObserver {
 public:
  void on_progress(const Progress& progress) override {
    if (progress.phase == Progress::Phase::measuring) measuring(progress);
  }
  void on_warning(const std::string&) override {}

  std::function<void(const Progress&)> measuring = [](const Progress&) {};
};

/// A folder for the files of ranks.
class Folder : public test::TemporaryFolder {
 public:
  std::string out() const { return (*this / "out.json").string(); }
  bool has_file_of(int rank) const {
    return std::filesystem::exists(out() + ".rank-" + std::to_string(rank));
  }
  bool empty() const { return std::filesystem::is_empty(path()); }
};

/// Ranks as threads of this process. In-process locks exclude only clients of the same rank.
class TeamTest : public testing::Test {
 protected:
  static constexpr int kRanks = 4;

  TeamTest() : ranks_(kRanks) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto now = [this] { return Carrier::current().now() + ahead_.load(); };
      links_.push_back(*Link::make([this, rank] { return ranks_.rank(rank); }, now));
      hellos_.push_back({.host = "host-" + std::to_string(rank),
                         .build = {},
                         .network = {},
                         .boot = std::to_string(rank)});
    }
    team_.hellos = hellos_;
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
    plan_.maker = [this](const RunPlan& plan, const Descriptor& strategy, int repetition,
                         const Progress& progress, ProgressObserver& observer,
                         const std::stop_token& stop) {
      return lead(*links_[0], team_, plan, strategy, repetition, progress, observer, stop);
    };
  }

  std::function<void(Services&)> provide() {
    return [this](Services& services) {
      // The test owns it and outlives it.
      services.provide<redis::ConnectionFactory>(
          std::shared_ptr<redis::ConnectionFactory>(std::shared_ptr<void>(), &redis_));
    };
  }

  void start(int rank, const std::function<void(Link&)>& work) {
    members_.push_back(*Thread::start(
        [this, rank, work](const std::stop_token&) {
          work(*links_[static_cast<std::size_t>(rank)]);
        },
        [](const std::string& why) { ADD_FAILURE() << why; }));
  }

  /// `impostor`: replaces the last rank's work; may be empty.
  RunReport run(const std::function<void(Link&)>& impostor = {}) {
    for (int rank = 1; rank < kRanks; ++rank) {
      if (impostor && rank == kRanks - 1) {
        start(rank, impostor);
        continue;
      }
      start(rank, [this, rank](Link& link) {
        RunPlan own;
        own.provide_services = provide();
        if (machine_) own.machine = machine_;
        serve(link, hellos_[static_cast<std::size_t>(rank)], own);
      });
    }
    RunReport report = run_plans({&plan_, 1}, observer_, stop_.get_token());
    links_[0]->send_to_others(Kind::leave, to_bytes(true));
    members_.clear();
    return report;
  }

  /// A rank that begins like the others and then sends this instead of its part; nothing if empty.
  static std::function<void(Link&)> impostor(const std::function<std::string(int ticket)>& part) {
    return [part](Link& link) {
      const std::stop_token dead = link.stop().get_token();
      while (const auto message = link.next(link.now() + 1min, dead)) {
        Order order;
        std::pair<int, Duration> start;
        if (message->kind == Kind::leave) return;
        if (message->kind == Kind::order && from_bytes(message->body, order)) {
          link.send(0, Kind::ready, about(order.ticket, std::string()));
        }
        if (message->kind != Kind::start || !from_bytes(message->body, start)) continue;
        link.send(0, Kind::started, about(start.first, true));
        if (part) link.send(0, Kind::part, part(start.first));
      }
    };
  }

  /// Expects that the last rank is named and the others' figures are complete.
  void expect_left_out(const RunReport& report, const std::string& why) {
    ASSERT_EQ(report.runs.size(), 1U);
    const results::Run& run = report.runs.front();
    EXPECT_TRUE(run.ranks.back().lost);
    EXPECT_EQ(run.ranks.back().sections, 0U);
    EXPECT_FALSE(run.ranks[1].lost);
    EXPECT_GT(run.ranks[1].sections, 0U);
    EXPECT_FALSE(run.generator.valid);
    EXPECT_THAT(run.generator.reasons, Contains("rank 3 on host-3: " + why));
    EXPECT_NE(run.audit.verdict, results::Verdict::exclusive);
    EXPECT_TRUE(team_.kept_files);
    EXPECT_FALSE(team_.is_complete());
  }

  InProcessRanks ranks_;
  std::atomic<Duration> ahead_{};            ///< of all ranks' clocks
  std::function<MachineReading()> machine_;  ///< empty: the real one
  SimClock clock_;                           ///< stands still
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
  const Folder folder;
  team_.part_path = folder.out();
  bool had_files = false;
  plan_.run_over = [&](const results::Run&) {
    had_files = test::eventually([&] { return folder.has_file_of(0) && folder.has_file_of(3); });
  };
  plan_.workload.key_per_client = true;
  plan_.workload.warmup = 0ms;
  plan_.workload.duration = 1h;
  plan_.workload.iterations = 401;
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
  EXPECT_EQ(sections, 401U);
  EXPECT_EQ(run.sections, sections);
  EXPECT_EQ(run.fairness.per_client.size(), 8U);
  EXPECT_EQ(std::accumulate(run.fairness.per_client.begin(), run.fairness.per_client.end(),
                            std::uint64_t{0}),
            sections);
  EXPECT_EQ(run.audit.lost_updates, 0U);
  EXPECT_EQ(run.audit.increments, run.audit.counter);
  EXPECT_EQ(run.acquire.count, run.outcomes.acquired);
  EXPECT_EQ(redis_.keys(), 0U);
  EXPECT_TRUE(had_files);
  EXPECT_TRUE(folder.empty());
}

TEST_F(TeamTest, ALockThatExcludesWithinARankOnlyIsCaught) {
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  const results::Audit& audit = report.runs.front().audit;
  EXPECT_GT(audit.lost_updates, 0U);
  EXPECT_NE(audit.verdict, results::Verdict::exclusive);
}

TEST_F(TeamTest, ALoadThatIsTooHighIsJudgedForAllRanksTogether) {
  plan_.workload.rate = 20'000;
  const RunReport report = run();
  ASSERT_EQ(report.runs.size(), 1U);
  // A prefix would hide that the lock may be the reason.
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

TEST_F(TeamTest, ARankWithoutTheStrategySaysSo) {
  Descriptor unknown = *find_strategy("local-mutex");
  unknown.name = "of-another-build";
  plan_.strategies = {&unknown};
  team_.tickets = 5;  // from earlier orders
  const RunReport report = run();
  ASSERT_EQ(report.not_started.size(), 1U);
  EXPECT_THAT(report.not_started.front().reason,
              HasSubstr("of-another-build is not in this rank's build"));
}

TEST_F(TeamTest, ARankThatIsSilentWhileItConnectsIsLost) {
  // By then rank 0 has told the others, and time passes.
  team_.metrics_of = [this](int rank) {
    if (rank == kRanks - 1) ahead_ = 6s;
    return std::string();
  };
  ranks_.kill(kRanks - 1);
  const RunReport report = run([](Link&) {});
  ASSERT_EQ(report.not_started.size(), 1U);
  EXPECT_THAT(report.not_started.front().reason, HasSubstr("does not answer"));
  EXPECT_FALSE(team_.is_complete());
  EXPECT_FALSE(team_.kept_files);
}

TEST_F(TeamTest, ARankThatDiesIsNamedAndLeftOut) {
  const Folder folder;
  team_.part_path = folder.out();
  plan_.workload.key_per_client = true;
  observer_.measuring = [this](const Progress&) {
    ranks_.kill(kRanks - 1);
    links_.back()->stop().request_stop();
  };
  const RunReport report = run(impostor({}));
  expect_left_out(report, "it was lost: it is dead or cut off");
  EXPECT_EQ(report.runs.front().audit.lost_updates, 0U);
  EXPECT_TRUE(folder.has_file_of(1)) << "what there is of the run is kept";
}

TEST_F(TeamTest, ARankThatLivesAndSaysNothingIsLeftOutWithinABound) {
  plan_.workload.strategy.command_timeout = 100ms;
  const TimePoint begun = Carrier::current().now();
  expect_left_out(run(impostor({})), "it was lost: it sent no part");
  EXPECT_GE(Carrier::current().now() - begun, 3s);
}

TEST_F(TeamTest, ARankThatSendsSomethingElseIsLeftOut) {
  const auto garbage = [](int) { return std::string(100'000, '\xff'); };
  expect_left_out(run(impostor(garbage)), "it was lost: it sent no valid part of this run");
}

TEST_F(TeamTest, ARankWhosePartDidNotFitIsLeftOut) {
  const auto nothing = [](int) { return std::string(); };
  expect_left_out(run(impostor(nothing)),
                  "it was lost: its part of this run was too large to send");
}

class RecordingRank : public RankRun {
 public:
  using RankRun::part_of;
  using RankRun::RankRun;

  tl::expected<void, std::string> ready(tl::expected<void, std::string> own) override {
    return own;
  }
  tl::expected<TimePoint, std::string> start() override { return TimePoint(); }
  std::unique_ptr<WholeRun> gather(const PartOfRun&) override { return nullptr; }
};

TEST(RankRun, HasTheWaitsOfEachSecondAsLongAsTheyFitIntoItsPart) {
  const InProcessRanks ranks(1000);
  const auto link = *Link::make([&ranks] { return ranks.rank(1); });
  Order order;
  order.workload.clients = 1000;
  RecordingRank rank(*link, order, {});
  test::RunUnderTest run(*find_strategy("local-mutex"));
  HistogramSnapshot waits;
  for (std::uint64_t& bucket : waits.buckets) bucket = 1;
  const std::vector<results::SeriesPoint> series;
  const PartOfRun part{.run = run.shared(), .series = series};
  for (int second = 0; second < 3; ++second) rank.note(part, waits, false);
  EXPECT_EQ(rank.part_of(part).acquired.size(), 3U);
  for (int second = 0; second < 1000; ++second) rank.note(part, waits, false);
  EXPECT_TRUE(rank.part_of(part).acquired.empty());
}

TEST_F(TeamTest, ARankThatSpeaksForAnotherOneIsLeftOut) {
  const auto of_another = [](int ticket) {
    Part part;
    part.row.rank = 1;
    return about(ticket, part);
  };
  expect_left_out(run(impostor(of_another)), "it was lost: it sent no valid part of this run");
}

TEST_F(TeamTest, AStopEndsTheRunSoonAndSavesTheShareOfEachRank) {
  const Folder folder;
  team_.part_path = folder.out();
  plan_.workload.duration = 1h;
  observer_.measuring = [this](const Progress& progress) {
    if (progress.sections > 300) stop_.request_stop();
  };
  bool saved = false;
  plan_.run_over = [&](const results::Run&) {
    saved = test::eventually([&] { return folder.has_file_of(0) && folder.has_file_of(3); });
  };
  const RunReport report = run();
  EXPECT_TRUE(report.interrupted);
  ASSERT_EQ(report.runs.size(), 1U);
  EXPECT_GT(report.runs.front().sections, 300U);
  EXPECT_TRUE(saved);
}

/// A rank that only keeps its file.
class KeepingRank : public RankRun {
 public:
  using RankRun::RankRun;
  tl::expected<void, std::string> ready(tl::expected<void, std::string> own) override {
    return own;
  }
  tl::expected<TimePoint, std::string> start() override { return TimePoint(); }
  std::unique_ptr<WholeRun> gather(const PartOfRun&) override { return nullptr; }
};

TEST(RankRun, KeepsItsFileEveryTenSecondsAndAtOnceIfAsked) {
  const Folder folder;
  InProcessRanks ranks(1);
  std::atomic<Duration> time{};
  const auto link = Link::make([&] { return ranks.rank(0); }, [&] { return TimePoint(time); });
  ASSERT_TRUE(link);
  Order order;
  order.strategy = "none";
  order.part_path = folder.out();
  KeepingRank rank(**link, order, {.host = "host", .build = "this", .network = {}, .boot = {}});
  test::RunUnderTest run(*find_strategy("none"));
  std::vector<results::SeriesPoint> series;
  const auto second = [&](Duration at, bool at_once) {
    time = at;
    run.grant(1ms);
    series.emplace_back();
    rank.note({.run = run.shared(), .series = series}, {}, at_once);
    std::ifstream file(folder.out() + ".rank-0", std::ios::binary);
    const auto kept = read_part(std::string(std::istreambuf_iterator<char>(file), {}), "this");
    return kept ? kept->part.series.size() : 0;
  };
  EXPECT_EQ(second(9s, false), 0U);
  EXPECT_EQ(second(10s, false), 2U);
  EXPECT_EQ(second(19s, false), 2U);
  EXPECT_EQ(second(20s, false), 4U);
  EXPECT_EQ(second(21s, true), 5U);
}

TEST(Link, HearsOfOthersThoughNobodySpeaks) {
  InProcessRanks ranks(2);
  const auto root = Link::make([&] { return ranks.rank(0); });
  const TimePoint begun = (*root)->now();
  const auto other = Link::make([&] { return ranks.rank(1); });
  EXPECT_TRUE(test::eventually(
      [&] { return (*root)->heard_at(1) > begun && (*other)->heard_at(0) > begun; }));
}

TEST(Link, KeepsABoundedNumberOfMessages) {
  constexpr int kMost = 100'000;
  InProcessRanks ranks(2);
  const auto flooding = ranks.rank(0);
  for (int i = 0; i < kMost + 500; ++i) flooding->post(1, Kind::order, "x");
  flooding->post(1, Kind::stop, {});
  const auto one = Link::make([&] { return ranks.rank(1); });
  // The stop comes after all other messages.
  ASSERT_TRUE(test::eventually([&] { return (*one)->stop().stop_requested(); }));
  int kept = 0;
  while ((*one)->next((*one)->now())) ++kept;
  EXPECT_EQ(kept, kMost);
}

TEST(Link, OnlyRankZeroStopsOthers) {
  InProcessRanks ranks(3);
  const auto one = Link::make([&] { return ranks.rank(1); });
  ranks.rank(2)->post(1, Kind::stop, {});
  ranks.rank(2)->post(1, Kind::ready, {});
  EXPECT_TRUE((*one)->next((*one)->now() + 10s));
  EXPECT_FALSE((*one)->stop().stop_requested());
  ranks.rank(0)->post(1, Kind::stop, {});
  EXPECT_TRUE(test::eventually([&] { return (*one)->stop().stop_requested(); }));
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

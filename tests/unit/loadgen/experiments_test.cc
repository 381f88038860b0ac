#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "loadgen/experiments/costs.h"
#include "loadgen/record/histogram.h"
#include "tests/support/fake_renewal_channel.h"
#include "tests/support/virtual_time.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;

/// Locks on simulated time, taken according to the plan and renewed by a run's scheduler.
class PlannedLocks {
 public:
  explicit PlannedLocks(const HeldLocksPlan& plan) : plan_(plan) {
    scheduler_.provide_channel("one", [this](Env&) { return store_.connect(); });
    const TimePoint begun = clock_.now();
    for (std::uint64_t number = 0; number < plan.count; ++number) {
      run_until(begun + plan.taken_after(number));
      renewals_.push_back(scheduler_.keep(order(number)));
    }
    run_until(begun + plan.period());
  }

  std::size_t renewed_in(Duration window) {
    const std::size_t before = store_.asked().size();
    run_until(clock_.now() + window);
    return store_.asked().size() - before;
  }

 private:
  RenewalOrder order(std::uint64_t number) {
    return {.key = plan_.key(number),
            .token = "token",
            .state = std::make_shared<LeaseState>(clock_.now() + plan_.ttl, clock_.now()),
            .granted_at = clock_.now(),
            .ttl = plan_.ttl,
            .channels = {"one"}};
  }

  void run_until(TimePoint end) { lockbench::run_until(end, scheduler_, clock_); }

  const HeldLocksPlan& plan_;
  SimClock clock_;
  FakeRenewalStore store_{clock_};
  StrategyObserver ignored_;
  RenewalScheduler scheduler_{std::make_unique<SimEnv>(clock_), ignored_,
                              RenewalScheduler::Drive::by_hand};
  std::vector<std::shared_ptr<Renewal>> renewals_;
};

/// Renewals in windows of this length, one window for each pair of runs.
double renewed(std::uint64_t held, Duration ttl, Duration window, int pairs) {
  const Endpoints endpoints;
  const StrategyOptions options;
  std::size_t all = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    const HeldLocksPlan plan{.endpoints = endpoints,
                             .options = options,
                             .key_prefix = "{held:",
                             .count = held,
                             .ttl = ttl,
                             .phase = phase_of_pair(pair, pairs)};
    all += PlannedLocks(plan).renewed_in(window);
  }
  return static_cast<double>(all);
}

// Regression: when all locks were renewed at once, a window of one and a half periods counted
// either one renewal of each lock or two.
TEST(HeldLocks, AreRenewedAtTheRateThatTheirTtlAsksFor) {
  for (const Duration window : {700ms, 1000ms, 1500ms, 1999ms, 2600ms}) {
    EXPECT_NEAR(renewed(100, 3s, window, 1), 100 * seconds(window), 1) << seconds(window);
  }
  EXPECT_NEAR(renewed(1000, 10s, 3830ms, 1), 300 * 3.83, 1);
}

TEST(HeldLocks, FewAreCountedRightlyOverAllPairs) {
  for (const Duration window : {1000ms, 1250ms, 1500ms, 1900ms}) {
    EXPECT_NEAR(renewed(1, 3s, window, 8), 8 * seconds(window), 1) << seconds(window);
    EXPECT_NEAR(renewed(3, 3s, window, 5), 3 * 5 * seconds(window), 1) << seconds(window);
  }
}

TEST(RenewalCosts, PairsThatHadEndedOutliveAFailureAndAStop) {
  for (const bool stopped : {false, true}) {
    std::stop_source stop;
    int made = 0;
    std::vector<std::size_t> so_far;
    RenewalPlan plan;
    plan.held = {0};  // with none, there is no need for a server
    plan.pairs = 3;
    plan.so_far = [&](const std::vector<results::Run>& runs) { so_far.push_back(runs.size()); };
    plan.foreground.endpoints["redis"] = {"redis://127.0.0.1:1"};
    plan.foreground.maker = [&](const RunPlan&, const Descriptor&, int, const Progress&,
                                ProgressObserver&,
                                const std::stop_token&) -> tl::expected<results::Run, std::string> {
      if (++made < 4) return results::Run{};
      if (!stopped) return tl::unexpected<std::string>("the server is gone");
      stop.request_stop();
      return results::Run{};
    };
    CostsMeasured measured;
    test::on_virtual_time([&] {
      measured = measure_renewal(
          plan, [](const std::string&) {}, stop.get_token());
    });
    EXPECT_EQ(measured.runs.size(), 2U) << "of the first pair";
    EXPECT_THAT(so_far, ElementsAre(2U));
    EXPECT_EQ(measured.errors.size(), stopped ? 0U : 1U);
  }
}

class NoNodes : public QuorumNodes {
 public:
  Endpoints endpoints(const results::Nodes&) override { return {}; }
  tl::expected<void, std::string> inject(const results::Nodes&) override { return {}; }
  tl::expected<void, std::string> heal() override { return {}; }
};

TEST(QuorumExperiment, ARunThatAStopCutShortIsLeftOutButNotItsViolation) {
  std::stop_source stop;
  int made = 0;
  QuorumPlan plan;
  plan.nodes = {1};
  plan.run.maker = [&](const RunPlan&, const Descriptor&, int, const Progress&, ProgressObserver&,
                       const std::stop_token&) -> tl::expected<results::Run, std::string> {
    results::Run run;
    if (++made < 3) return run;
    stop.request_stop();
    run.audit.verdict = results::Verdict::violated;
    return run;
  };
  NoNodes nodes;
  const CostsMeasured measured = measure_quorum(
      plan, nodes, [](const std::string&) {}, stop.get_token());
  EXPECT_EQ(measured.runs.size(), 2U);
  EXPECT_EQ(measured.violated.size(), 1U);
}

std::vector<std::string> texts_of(const std::vector<QuorumPointPlan>& points) {
  std::vector<std::string> texts;
  texts.reserve(points.size());
  for (const QuorumPointPlan& point : points) texts.push_back(point.text());
  return texts;
}

TEST(QuorumPoints, StrategiesTakeTurnsInEachConstellation) {
  EXPECT_THAT(
      texts_of(points_of({.nodes = {5}, .contending = 1})),
      ElementsAre(
          "redis-set-nx-lua, 1 node, 1 client", "redis-wait, 1 node, 1 client",
          "redlock, 5 nodes, 1 client", "redlock-parallel, 5 nodes, 1 client",
          "redlock, 5 nodes, 2 down, 1 client", "redlock-parallel, 5 nodes, 2 down, 1 client",
          "redlock, 5 nodes, 2 frozen, 1 client", "redlock-parallel, 5 nodes, 2 frozen, 1 client",
          "redlock, 5 nodes, 2 slow, 1 client", "redlock-parallel, 5 nodes, 2 slow, 1 client",
          "redlock, 5 nodes, 3 down, 1 client", "redlock-parallel, 5 nodes, 3 down, 1 client"));
}

TEST(QuorumPoints, AMinorityIsWhatAQuorumOutlives) {
  const auto texts = texts_of(points_of({.nodes = {2, 3, 4, 7}, .contending = 1}));
  for (const char* there :
       {"redlock, 3 nodes, 1 down, 1 client", "redlock, 4 nodes, 1 down, 1 client",
        "redlock, 7 nodes, 3 down, 1 client", "redlock, 3 nodes, 2 down, 1 client",
        "redlock, 7 nodes, 4 down, 1 client"}) {
    EXPECT_THAT(texts, Contains(there));
  }
  EXPECT_TRUE(std::none_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.starts_with("redlock, 2 nodes, 1 down");
  })) << "two nodes outlive nothing";
}

TEST(QuorumPoints, HaveAsManyFaultyNodesAsAskedFor) {
  const auto texts = texts_of(
      points_of({.nodes = {3, 5}, .contending = 1, .down = {1, 4}, .frozen = {0}, .slow = {1, 2}}));
  std::vector<std::string> faulty;
  std::ranges::copy_if(texts, std::back_inserter(faulty), [](const std::string& text) {
    return text.starts_with("redlock,") && std::ranges::count(text, ',') == 3;
  });
  EXPECT_THAT(
      faulty,
      ElementsAre("redlock, 3 nodes, 1 down, 1 client", "redlock, 3 nodes, 1 slow, 1 client",
                  "redlock, 3 nodes, 2 slow, 1 client", "redlock, 5 nodes, 1 down, 1 client",
                  "redlock, 5 nodes, 4 down, 1 client", "redlock, 5 nodes, 1 slow, 1 client",
                  "redlock, 5 nodes, 2 slow, 1 client"));
}

results::Distribution of(std::initializer_list<Duration> samples) {
  HistogramSnapshot snapshot;
  for (const Duration sample : samples) snapshot.record(sample);
  return to_distribution(snapshot);
}

/// Adds a run for each round, numbered from 1; zero: nothing was granted.
void add_runs(std::vector<results::Run>& runs, const char* strategy, const results::Nodes& nodes,
              std::initializer_list<Duration> p50s) {
  for (const Duration p50 : p50s) {
    results::Run& run = runs.emplace_back();
    run.strategy = strategy;
    run.repetition =
        1 + static_cast<int>(std::ranges::count_if(runs, [&](const auto& other) {
          return &other != &run && other.strategy == strategy && other.load.nodes == nodes;
        }));
    run.load.nodes = nodes;
    run.commands_per_section = 2 * static_cast<double>(nodes.count);
    if (p50 > Duration::zero()) run.acquire = of({p50});
  }
}

TEST(NodeCosts, AreThoseOfTheRoundsInCommon) {
  // The machine gets slower from round to round, which must not count as a difference between
  // points.
  std::vector<results::Run> runs;
  add_runs(runs, "redlock", {.count = 1}, {100us, 200us, 300us});
  add_runs(runs, "redlock", {.count = 5}, {140us, 244us, 336us});
  add_runs(runs, "other", {.count = 5}, {1ms, 1ms, 1ms});
  add_runs(runs, "redlock", {.count = 5, .down = 2}, {900us, 900us, 900us});
  add_node_costs(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ASSERT_EQ(runs[i].costs.has_value(), i / 3 == 1) << "only that quorum can be compared: " << i;
    if (!runs[i].costs) continue;
    const auto& cost = runs[i].costs->node_seconds.value();
    EXPECT_NEAR(cost.mean, 10e-6, 1e-6);
    ASSERT_TRUE(cost.interval);
    EXPECT_GT(cost.interval->low, 5e-6);
    EXPECT_LT(cost.interval->high, 15e-6);
    EXPECT_DOUBLE_EQ(runs[i].costs->node_commands.value(), 2);
  }
}

TEST(NodeCosts, LeaveOutRoundsWithoutGrants) {
  std::vector<results::Run> runs;
  add_runs(runs, "redlock", {.count = 1}, {100us, 0us, 300us});
  add_runs(runs, "redlock", {.count = 5}, {140us, 900us, 340us});
  add_node_costs(runs);
  ASSERT_TRUE(runs.back().costs);
  EXPECT_NEAR(runs.back().costs->node_seconds->mean, 10e-6, 1e-6);
  EXPECT_TRUE(runs.back().costs->node_seconds->interval);
  runs.clear();
  add_runs(runs, "redlock", {.count = 1}, {100us, 0us});
  add_runs(runs, "redlock", {.count = 5}, {0us, 140us});
  add_node_costs(runs);
  EXPECT_FALSE(runs.back().costs) << "no round in common";
}

}  // namespace
}  // namespace lockbench::loadgen

#include "loadgen/experiments/capacity_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Decision;

/// A lock that keeps the objective up to a rate; each step takes three seconds, and each rate five
/// steps.
class Search {
 public:
  explicit Search(double capacity) : capacity_(capacity) {}

  CapacityInterval run(const CapacitySearchPlan& plan) {
    steps_.clear();
    elapsed_ = 0;
    CapacitySearch search(
        plan,
        [this](double rate) {
          ++steps_[rate];
          elapsed_ += kStep;
          const bool near = std::abs(rate / capacity_ - 1) < open_;
          Decision decision = rate <= capacity_ ? Decision::kept : Decision::missed;
          if (near || steps_[rate] < 5) decision = Decision::open;
          return std::optional(CapacitySearch::Step{decision, kStep});
        },
        [](double) { return kStep; });
    return search.run();
  }

  /// How many it made at each rate.
  const std::map<double, int>& steps() const { return steps_; }
  double elapsed() const { return elapsed_; }
  /// Rates so near to the capacity cannot be decided.
  void leave_open(double share) { open_ = share; }

 private:
  static constexpr double kStep = 3;
  const double capacity_;
  double open_ = 0;
  std::map<double, int> steps_;
  double elapsed_ = 0;
};

class CapacityFrom : public testing::TestWithParam<double> {};

TEST_P(CapacityFrom, EncloseItAndConfirmBothEnds) {
  constexpr double kCapacity = 437;
  Search search(kCapacity);
  const CapacityInterval found = search.run({.first_rate = GetParam()});
  EXPECT_TRUE(found.confirmed);
  EXPECT_LE(found.kept, kCapacity);
  EXPECT_GT(found.missed, kCapacity);
  EXPECT_LE(found.missed, 1.1 * found.kept);
  for (const double end : {found.kept, found.missed}) {
    EXPECT_GE(search.steps().at(end), 10) << "twice as often as it took to decide it";
  }
}

INSTANTIATE_TEST_SUITE_P(Rates, CapacityFrom, testing::Values(5, 100, 437, 438, 9000));

TEST(CapacitySearch, WhereNothingIsKeptSaysSoAndEnds) {
  Search search(0);
  const CapacityInterval found = search.run({.first_rate = 100, .seconds = 3000});
  EXPECT_EQ(found.kept, 0);
  EXPECT_LT(found.missed, 1);
  EXPECT_FALSE(found.confirmed);
  EXPECT_LT(search.elapsed(), 200) << "what a free lock does not keep, no rate does";
}

TEST(CapacitySearch, WhereNothingIsMissedSaysSoAndEnds) {
  Search search(1e9);
  const CapacityInterval found = search.run({.first_rate = 100, .seconds = 3000});
  EXPECT_GT(found.kept, 1e6);
  EXPECT_TRUE(std::isnan(found.missed));
}

TEST(CapacitySearch, TriesNothingThatTheCeilingForbids) {
  Search search(1e9);
  const CapacityInterval found = search.run({.first_rate = 100, .ceiling = 195});
  EXPECT_LT(found.kept, 195);
  EXPECT_GT(found.kept, 195 / 1.1);
  EXPECT_TRUE(std::isnan(found.missed)) << "it was not measured";
  EXPECT_TRUE(found.confirmed);
  EXPECT_LT(search.steps().rbegin()->first, 195);
}

TEST(CapacitySearch, WhatStaysOpenIsLeftForBothEnds) {
  Search search(437);
  search.leave_open(0.1);
  const CapacityInterval found = search.run({.first_rate = 430});
  EXPECT_GT(found.kept, 0.8 * 437);
  EXPECT_LE(found.kept, 0.9 * 437);
  EXPECT_GE(found.missed, 1.1 * 437);
  EXPECT_LT(found.missed, 1.25 * 437);
  EXPECT_FALSE(found.confirmed);
  EXPECT_GT(search.steps().at(found.kept), 5) << "the last part of the time is for the ends";
  EXPECT_GT(search.steps().at(found.missed), 5);
}

TEST(CapacitySearch, AnEndThatDoesNotHoldLeavesTimeForAnother) {
  // 100/s seems to be kept, until it has been measured six times more.
  const auto step_seconds = [](double rate) { return 300 / rate; };
  std::map<double, int> steps;
  CapacitySearch search(
      {.first_rate = 100, .seconds = 300},
      [&](double rate) {
        const bool enough = ++steps[rate] >= 5;
        Decision decision = rate < 200 ? Decision::open : Decision::missed;
        if (rate < 100 || (rate == 100 && steps[rate] < 11)) decision = Decision::kept;
        if (!enough) decision = Decision::open;
        return std::optional(CapacitySearch::Step{decision, step_seconds(rate), enough});
      },
      step_seconds);
  const CapacityInterval found = search.run();
  EXPECT_GE(steps[100], 11);
  EXPECT_GE(found.kept, 50);
  EXPECT_LT(found.kept, 100);
  EXPECT_EQ(found.missed, 200);
}

TEST(CapacitySearch, DoesNotLeaveARateThatCouldNotBeDecidedYet) {
  int steps = 0;
  CapacitySearch search(
      {.first_rate = 100, .seconds = 60},
      [&](double rate) {
        EXPECT_EQ(rate, 100);
        ++steps;
        return std::optional(CapacitySearch::Step{Decision::open, 3, false});
      },
      [](double) { return 3.0; });
  search.run();
  EXPECT_EQ(steps, 20);
}

TEST(CapacitySearch, GoesOnElsewhereWhereStepsAreDisturbed) {
  // Above 300 no step counts, so that nothing can be missed.
  std::map<double, int> steps;
  CapacitySearch search(
      {.first_rate = 400, .seconds = 300},
      [&](double rate) {
        const bool enough = ++steps[rate] >= 5;
        if (rate > 300) return std::optional(CapacitySearch::Step{Decision::open, 3, enough, true});
        return std::optional(
            CapacitySearch::Step{enough ? Decision::kept : Decision::open, 3, enough});
      },
      [](double) { return 3.0; });
  EXPECT_GE(search.run().kept, 250);
  EXPECT_EQ(steps[400], 5);
}

TEST(CapacitySearch, MeasuresAPlannedRateThatMayBeTheLimit) {
  Search search(437);
  search.run({.first_rate = 250, .planned = 300});
  EXPECT_TRUE(search.steps().contains(300));
  search.run({.first_rate = 250, .planned = 20});
  EXPECT_FALSE(search.steps().contains(20)) << "lower than one that is kept";
}

TEST(CapacitySearch, EndsInTimeWhateverItIsTold) {
  std::mt19937_64 random(7);
  for (const double seconds : {0.0, 50.0, 300.0}) {
    double elapsed = 0;
    CapacitySearch search(
        {.seconds = seconds},
        [&](double) {
          elapsed += 3;
          return std::optional(CapacitySearch::Step{static_cast<Decision>(random() % 3), 3});
        },
        [](double) { return 3.0; });
    search.run();
    EXPECT_LE(elapsed, seconds);
  }
}

TEST(CapacitySearch, AStopKeepsWhatIsKnown) {
  int steps = 0;
  CapacitySearch search(
      {.first_rate = 100},
      [&](double rate) -> std::optional<CapacitySearch::Step> {
        if (++steps > 3) return std::nullopt;
        return CapacitySearch::Step{rate < 300 ? Decision::kept : Decision::missed, 1};
      },
      [](double) { return 1.0; });
  const CapacityInterval found = search.run();
  EXPECT_EQ(steps, 4);
  EXPECT_GE(found.kept, 100);
  EXPECT_GE(found.missed, 300);
  EXPECT_FALSE(found.confirmed);
}

/// Until the first load has been measured.
CapacityMeasured measured_briefly(const Descriptor& strategy) {
  CapacityPlan plan;
  plan.strategy = &strategy;
  plan.run.run_id = "brief";
  plan.run.workload.duration = 100ms;
  plan.run.workload.clients = 4;
  plan.run.workload.warmup = {};
  plan.run.workload.hold = DurationDistribution::constant(1ms);
  plan.run.workload.contended_grants = 0;
  std::stop_source stop;
  return measure_capacity(
      plan,
      [&](const std::string& line) {
        if (line.find("closed loop: ") != std::string::npos) stop.request_stop();
      },
      stop.get_token());
}

TEST(CapacityExperiment, RemembersWhetherALockLetTwoIn) {
  EXPECT_EQ(measured_briefly(leaky_lock).capacity.violated, true);
  EXPECT_EQ(measured_briefly(*find_strategy("none")).capacity.violated, true) << "a control";
  EXPECT_EQ(measured_briefly(*find_strategy("local-mutex")).capacity.violated, false);
  const Behaviour refuses{.acquire = [](const Context&, const AcquireRequest&) {
    return outcome(AcquireOutcome::refused);
  }};
  EXPECT_EQ(measured_briefly(scripted("refuses", refuses)).capacity.violated, std::nullopt);
}

TEST(CapacityExperiment, TakesTheTimeOfItsStepsWhereHoldsAreLong) {
  CapacityPlan plan;
  plan.objective = {results::parse_threshold("acquire.p50<20s").value()};
  plan.run.workload.hold = DurationDistribution::constant(2s);
  // Five steps, of 20 holds each after a warm-up of as many.
  plan.time = 399s;
  EXPECT_THAT(search_too_short(plan), testing::HasSubstr("5 steps of 40 holds or more"));
  plan.time = 401s;
  EXPECT_EQ(search_too_short(plan), "");
  EXPECT_GE(default_search_time(plan.run.workload, plan.objective), 401s);
}

}  // namespace
}  // namespace lockbench::loadgen

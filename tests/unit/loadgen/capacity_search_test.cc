#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "loadgen/experiments/capacity_experiment.h"
#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using results::Decision;

using Step = SearchStep;
using Length = StepLength;

/// The result of a step at a rate that has been measured `times` times, including this step.
using Shows = std::function<std::optional<Step>(double rate, int times)>;

constexpr double kStep = 3;  ///< seconds

/// The objective is kept up to the capacity. Five steps decide each rate, except rates within
/// `undecided` of the capacity.
Shows keeps_up_to(double capacity, double undecided = 0) {
  return [=](double rate, int times) {
    const bool open = std::abs(rate / capacity - 1) < undecided || times < 5;
    const Decision decided = rate <= capacity ? Decision::kept : Decision::missed;
    return Step{open ? Decision::open : decided, kStep};
  };
}

class Search {
 public:
  explicit Search(
      Shows shows, EstimateStep estimate = [](double, Length) { return kStep; })
      : shows_(std::move(shows)), estimate_(std::move(estimate)) {}

  CapacityInterval run(const CapacitySearchPlan& plan) {
    steps_.clear();
    made_.clear();
    elapsed_ = 0;
    return search_capacity(
        plan,
        [this](double rate, Length length) {
          const auto step = shows_(rate, ++steps_[rate]);
          if (step) elapsed_ += step->seconds;
          made_.emplace_back(rate, length);
          return step;
        },
        estimate_);
  }

  /// Number of steps at each rate.
  const std::map<double, int>& steps() const { return steps_; }
  /// Rates and lengths in order.
  const std::vector<std::pair<double, Length>>& made() const { return made_; }
  double elapsed() const { return elapsed_; }

 private:
  const Shows shows_;
  const EstimateStep estimate_;
  std::map<double, int> steps_;
  std::vector<std::pair<double, Length>> made_;
  double elapsed_ = 0;
};

class CapacityFrom : public testing::TestWithParam<double> {};

TEST_P(CapacityFrom, EncloseItAndConfirmBothEnds) {
  constexpr double kCapacity = 437;
  Search search(keeps_up_to(kCapacity));
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
  Search search(keeps_up_to(0));
  const CapacityInterval found = search.run({.first_rate = 100, .seconds = 3000});
  EXPECT_EQ(found.kept, 0);
  EXPECT_LT(found.missed, 1);
  EXPECT_FALSE(found.confirmed);
  EXPECT_LT(search.elapsed(), 200) << "what a free lock does not keep, no rate does";
}

TEST(CapacitySearch, TriesNothingThatTheCeilingForbids) {
  Search search(keeps_up_to(1e9));
  const CapacityInterval found = search.run({.first_rate = 100, .ceiling = 195});
  EXPECT_LT(found.kept, 195);
  EXPECT_GT(found.kept, 195 / 1.1);
  EXPECT_TRUE(std::isnan(found.missed)) << "it was not measured";
  EXPECT_TRUE(found.confirmed);
  EXPECT_LT(search.steps().rbegin()->first, 195);
}

TEST(CapacitySearch, WhatStaysOpenIsLeftForBothEnds) {
  Search search(keeps_up_to(437, 0.1));
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
  const auto seconds = [](double rate, Length = Length::full) { return 300 / rate; };
  Search search(
      [&](double rate, int times) {
        Decision decision = rate < 200 ? Decision::open : Decision::missed;
        if (rate < 100 || (rate == 100 && times < 11)) decision = Decision::kept;
        return Step{times < 5 ? Decision::open : decision, seconds(rate), times >= 5};
      },
      seconds);
  const CapacityInterval found = search.run({.first_rate = 100, .seconds = 300});
  EXPECT_GE(search.steps().at(100), 11);
  EXPECT_GE(found.kept, 50);
  EXPECT_LT(found.kept, 100);
  EXPECT_EQ(found.missed, 200);
}

TEST(CapacitySearch, DoesNotLeaveARateThatCouldNotBeDecidedYet) {
  Search search([](double, int) { return Step{Decision::open, kStep, false}; });
  search.run({.first_rate = 100, .seconds = 60});
  EXPECT_EQ(search.steps(), (std::map<double, int>{{100, 20}}));
}

TEST(CapacitySearch, GoesOnElsewhereWhereStepsAreDisturbed) {
  // Above 300 no step counts, so no rate can be missed.
  Search search([](double rate, int times) {
    if (rate > 300) return Step{Decision::open, kStep, times >= 5, true};
    return Step{times >= 5 ? Decision::kept : Decision::open, kStep, times >= 5};
  });
  EXPECT_GE(search.run({.first_rate = 400, .seconds = 300}).kept, 250);
  EXPECT_EQ(search.steps().at(400), 5);
}

TEST(CapacitySearch, DecidesAPlannedRateFirstUnlessThatTakesTooLong) {
  Search search(keeps_up_to(437));
  for (const double planned : {300.0, 20.0, 5000.0}) {
    search.run({.first_rate = 250, .planned = planned});
    EXPECT_EQ(search.made().front().first, planned);
    EXPECT_GE(search.steps().at(planned), 5);
  }
  // Its steps take 30 s each.
  Search slow(keeps_up_to(437), [](double rate, Length) { return 300 / rate; });
  slow.run({.first_rate = 250, .planned = 10});
  EXPECT_FALSE(slow.steps().contains(10)) << "lower than one that is kept";
  Search brief(keeps_up_to(437), [](double rate, Length length) {
    return length == Length::full ? 300 / rate : kStep;
  });
  brief.run({.first_rate = 250, .planned = 10, .bracket_seconds = 25});
  EXPECT_EQ(brief.made().front(), std::pair(10.0, Length::brief)) << "a single step is cheap";
}

/// Each step meets the objective up to the capacity, and none decides anything.
Shows meets_up_to(double capacity) {
  return [=](double rate, int) {
    return Step{Decision::open, kStep, false, false, rate <= capacity};
  };
}

TEST(CapacitySearch, BracketsTheAnswerFirstAndSaysSo) {
  Search search(meets_up_to(437));
  double met = 0, not_met = 0;
  search.run({.first_rate = 50,
              .seconds = 300,
              .bracket_seconds = 30,
              .bracketed = [&](double below, double above) {
                met = below;
                not_met = above;
              }});
  EXPECT_LE(met, 437);
  EXPECT_GT(not_met, 437);
  EXPECT_LE(not_met, 1.5 * met);
  const auto first_full =
      std::ranges::find(search.made(), Length::full, &std::pair<double, Length>::second);
  ASSERT_NE(first_full, search.made().end());
  EXPECT_LE(first_full - search.made().begin(), 10) << "in 30 s";
  EXPECT_EQ(first_full->first, met) << "goes on upwards from what is probably kept";
}

TEST(CapacitySearch, NarrowsTheBracketWhereAFullStepTakesTooLong) {
  Search search(meets_up_to(437),
                [](double, Length length) { return length == Length::full ? 100 : kStep; });
  const CapacityInterval found =
      search.run({.first_rate = 50, .seconds = 60, .bracket_seconds = 9});
  EXPECT_EQ(found.kept, 0) << "nothing was decided";
  EXPECT_EQ(search.elapsed(), 60);
  const auto above = search.steps().upper_bound(437);
  ASSERT_NE(above, search.steps().end());
  EXPECT_LE(above->first, 1.5 * std::prev(above)->first);
}

TEST(CapacitySearch, SaysThatNoRateWasMet) {
  double met = 1, not_met = 0;
  Search(meets_up_to(0))
      .run({.first_rate = 100, .bracket_seconds = 12, .bracketed = [&](double below, double above) {
              met = below;
              not_met = above;
            }});
  EXPECT_EQ(met, 0);
  EXPECT_EQ(not_met, 12.5) << "100, 50, 25 and 12.5";
}

TEST(CapacitySearch, EndsInTimeWhateverItIsTold) {
  std::mt19937_64 random(7);
  Search search([&](double, int) { return Step{static_cast<Decision>(random() % 3), kStep}; });
  for (const double seconds : {0.0, 50.0, 300.0}) {
    search.run({.seconds = seconds});
    EXPECT_LE(search.elapsed(), seconds);
  }
}

TEST(CapacitySearch, AStopKeepsWhatIsKnown) {
  int left = 3;
  Search search(
      [&](double rate, int) -> std::optional<Step> {
        if (left-- == 0) return std::nullopt;
        return Step{rate < 300 ? Decision::kept : Decision::missed, 1};
      },
      [](double, Length) { return 1.0; });
  const CapacityInterval found = search.run({.first_rate = 100});
  EXPECT_EQ(search.elapsed(), 3) << "nothing after the stop";
  EXPECT_GE(found.kept, 100);
  EXPECT_GE(found.missed, 300);
  EXPECT_FALSE(found.confirmed);
}

/// Each step shows whether the objective is met, and five decide a rate, except near the capacity,
/// where all rates stay open.
Shows meets_and_decides(double capacity, double undecided) {
  return [=](double rate, int times) {
    Step step = *keeps_up_to(capacity, undecided)(rate, times);
    step.met = rate <= capacity;
    return step;
  };
}

constexpr double kRealBracket = 25;

class GuessFrom : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Rates, GuessFrom, testing::Values(100, 262, 400, 9000));

TEST_P(GuessFrom, WithAGoodOneAThirdOfTheTimeIsEnough) {
  Search search(meets_and_decides(437, 0.03));
  CapacitySearchPlan plan{.first_rate = GetParam(), .bracket_seconds = kRealBracket};
  search.run(plan);
  const double without = search.elapsed();
  plan.guess = 437;
  const CapacityInterval found = search.run(plan);
  EXPECT_LE(3 * search.elapsed(), without);
  EXPECT_TRUE(found.confirmed);
  EXPECT_LE(found.kept, 437);
  EXPECT_GT(found.missed, 437);
}

TEST_P(GuessFrom, ABadOneCostsAFewShortSteps) {
  for (const double guess : {43.7, 4370.0}) {
    Search search(meets_and_decides(437, 0));
    const CapacityInterval found =
        search.run({.first_rate = GetParam(), .guess = guess, .bracket_seconds = kRealBracket});
    EXPECT_TRUE(found.confirmed);
    EXPECT_LE(found.kept, 437);
    EXPECT_GT(found.missed, 437);
    EXPECT_LE(found.missed, 1.1 * found.kept);
    const auto in_vain = std::ranges::count_if(
        search.made(), [&](const auto& step) { return std::abs(step.first / guess - 1) < 0.2; });
    EXPECT_LE(in_vain, 3);
  }
}

TEST(CapacitySearch, TriesNoGuessThatTheCeilingForbids) {
  Search search(meets_and_decides(180, 0));
  search.run({.first_rate = 50, .guess = 400, .ceiling = 195, .bracket_seconds = kRealBracket});
  EXPECT_LT(search.steps().rbegin()->first, 195);
}

/// A simulated machine that keeps 50 ms up to 300/s, and serves 500/s in a closed loop.
std::optional<results::Run> simulated_machine(const Workload& load) {
  HistogramSnapshot waits;
  for (int i = 0; i < 1000; ++i) waits.record(load.rate.value_or(500) <= 300 ? 10ms : 100ms);
  results::Run run;
  run.acquire = to_distribution(waits);
  run.sections_per_second = load.rate.value_or(500);
  run.outcomes.acquired = 1000;
  return run;
}

CapacityPlan guessing(const char* objective) {
  CapacityPlan plan;
  plan.strategy = find_strategy("local-mutex");
  plan.objective = {results::parse_threshold(objective).value()};
  plan.simulate = simulated_machine;
  return plan;
}

TEST(CapacityGuess, IsWhatASimulationKeepsInProportionToTheClosedLoops) {
  EXPECT_NEAR(guess_capacity(guessing("acquire.p99<50ms"), 500).value(), 300, 15);
  EXPECT_NEAR(guess_capacity(guessing("acquire.p99<50ms"), 250).value(), 150, 8);
}

TEST(CapacityGuess, IsNothingWhereTheSimulationShowsNothing) {
  EXPECT_EQ(guess_capacity(guessing("acquire.p99<1ms"), 500), std::nullopt) << "met at no rate";
  EXPECT_EQ(guess_capacity(guessing("acquire.p99<50ms"), 0), std::nullopt);
  CapacityPlan plan = guessing("acquire.p99<50ms");
  plan.simulate = [](const Workload&) { return std::optional<results::Run>(); };
  EXPECT_EQ(guess_capacity(plan, 500), std::nullopt);
  plan.simulate = {};
  EXPECT_EQ(guess_capacity(plan, 500), std::nullopt);
}

/// Runs until the first load has been measured.
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

TEST(CapacityExperiment, BeginsItsSearchAtTheGuess) {
  CapacityPlan plan = guessing("acquire.p99<50ms");
  plan.time = 60s;
  plan.run.run_id = "guess";
  // The real machine is half as fast as the simulated one.
  std::vector<std::optional<double>> rates;
  plan.run.maker = [&](const RunPlan& made, auto&&...) -> tl::expected<results::Run, std::string> {
    rates.push_back(made.workload.rate);
    results::Run run = *simulated_machine(made.workload);
    run.sections_per_second = 250;
    return run;
  };
  std::stop_source stop;
  std::vector<std::string> lines;
  measure_capacity(
      plan,
      [&](const std::string& line) {
        lines.push_back(line);
        if (rates.size() > 1) stop.request_stop();
      },
      stop.get_token());
  EXPECT_THAT(lines, testing::Contains(testing::HasSubstr("simulated: the objective is probably")));
  ASSERT_GE(rates.size(), 2U);
  EXPECT_EQ(rates[0], std::nullopt) << "the closed loop";
  EXPECT_NEAR(rates[1].value(), 150, 15);
}

TEST(KeysNeeded, AreThoseThatCarryThePlannedRateAsTheyDidHere) {
  results::Capacity capacity{.keys = 2, .lowest = 100, .highest = 110, .limit = "lock"};
  const auto needed = [&](double planned, const Workload& load = {}) {
    capacity.planned_rate = planned;
    return keys_needed(capacity, load);
  };
  EXPECT_EQ(needed(101), 3U);
  EXPECT_EQ(needed(1500), 30U);
  EXPECT_EQ(needed(100), std::nullopt) << "it is kept";
  EXPECT_EQ(needed(1500, {.key_skew = 1}), std::nullopt);
  capacity.limit = "store";
  EXPECT_EQ(needed(1500), std::nullopt);
}

TEST(CapacityExperiment, TakesTheTimeOfItsStepsWhereHoldsAreLong) {
  CapacityPlan plan;
  plan.objective = {results::parse_threshold("acquire.p50<20s").value()};
  plan.run.workload.hold = DurationDistribution::constant(2s);
  // Five steps of 20 holds each, after warm-ups of the same length.
  plan.time = 399s;
  EXPECT_THAT(search_too_short(plan), testing::HasSubstr("5 steps of 40 holds or more"));
  plan.time = 401s;
  EXPECT_EQ(search_too_short(plan), "");
  EXPECT_GE(default_search_time(plan.run.workload, plan.objective), 401s);
}

}  // namespace
}  // namespace lockbench::loadgen

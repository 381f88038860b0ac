#include "loadgen/experiments/capacity_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "loadgen/experiments/capacity_rate.h"
#include "loadgen/record/histogram.h"

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
        [this](double rate, bool confirms) {
          steps_.emplace_back(rate, confirms);
          elapsed_ += kStep;
          const bool near = std::abs(rate / capacity_ - 1) < open_;
          Decision decision = rate <= capacity_ ? Decision::kept : Decision::missed;
          if (near || steps_at(rate) < 5) decision = Decision::open;
          return std::optional(CapacitySearch::Step{decision, kStep});
        },
        [](double) { return kStep; });
    return search.run();
  }

  std::ptrdiff_t steps_at(double rate, bool confirming = false) const {
    return std::count_if(steps_.begin(), steps_.end(), [&](const auto& step) {
      return step.first == rate && (step.second || !confirming);
    });
  }
  std::set<double> rates() const {
    std::set<double> tried;
    for (const auto& [rate, confirms] : steps_) tried.insert(rate);
    return tried;
  }
  double elapsed() const { return elapsed_; }
  /// Rates so near to the capacity cannot be decided.
  void leave_open(double share) { open_ = share; }

 private:
  static constexpr double kStep = 3;
  const double capacity_;
  double open_ = 0;
  std::vector<std::pair<double, bool>> steps_;
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
    EXPECT_EQ(search.steps_at(end, true), 5) << "as often as it took to decide it";
    EXPECT_EQ(search.steps_at(end), 10);
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
  EXPECT_LT(*search.rates().rbegin(), 195);
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
  EXPECT_GT(search.steps_at(found.kept, true), 0) << "the last part of the time is for the ends";
  EXPECT_GT(search.steps_at(found.missed, true), 0);
}

TEST(CapacitySearch, DoesNotLeaveARateThatCouldNotBeDecidedYet) {
  int steps = 0;
  CapacitySearch search(
      {.first_rate = 100, .seconds = 60},
      [&](double rate, bool) {
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
      [&](double rate, bool) {
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
  EXPECT_TRUE(search.rates().contains(300));
  search.run({.first_rate = 250, .planned = 20});
  EXPECT_FALSE(search.rates().contains(20)) << "lower than one that is kept";
}

TEST(CapacitySearch, EndsInTimeWhateverItIsTold) {
  std::mt19937_64 random(7);
  for (const double seconds : {0.0, 50.0, 300.0}) {
    double elapsed = 0;
    CapacitySearch search(
        {.seconds = seconds},
        [&](double, bool) {
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
      [&](double rate, bool) -> std::optional<CapacitySearch::Step> {
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

/// A fair lock with one key: sections arrive at random, and each keeps it for the same time
/// (M/D/1). Waits by Lindley's recursion.
struct SimulatedLock {
  double service = 0.0075;
  double stall = 0, stalls_per_second = 0;  ///< of the lock's own time
  double slow_from = 1e9;                   ///< seconds, from which on it serves
  double slow_service = 0;                  ///< so slowly
  double clock = 0;

  /// Waits of so many sections after a warm-up.
  std::vector<double> waits(double rate, std::size_t sections, std::mt19937_64& random) {
    std::exponential_distribution<double> gap(rate);
    std::uniform_real_distribution<double> chance;
    const double warm_up = clock + std::max(0.5, 20 * service);
    std::vector<double> all;
    double wait = 0;
    while (all.size() < sections) {
      const double passed = gap(random);
      clock += passed;
      wait = std::max(0.0, wait - passed);
      if (clock > warm_up) all.push_back(wait);
      const double each = clock > slow_from ? slow_service : service;
      wait += each;
      if (chance(random) < stalls_per_second * each) wait += stall;
    }
    clock += wait;
    return all;
  }

  /// The rate at which a percentile is the bound, by long simulations.
  double capacity(double bound, double share) const {
    double low = 0, high = 1 / service;
    for (int i = 0; i < 10; ++i) {
      std::mt19937_64 random(11);
      SimulatedLock lock = *this;
      const double middle = (low + high) / 2;
      const auto all = lock.waits(middle, 100'000, random);
      const auto beyond =
          std::count_if(all.begin(), all.end(), [&](double w) { return w > bound; });
      (static_cast<double>(beyond) < (1 - share) * 1e5 ? low : high) = middle;
    }
    return (low + high) / 2;
  }
};

results::Run run_of(const std::vector<double>& waits) {
  HistogramSnapshot lengths;
  for (const double wait : waits) lengths.record(Duration(std::llround(wait * 1e9)));
  results::Run run;
  run.acquire = to_distribution(lengths);
  run.sections = run.outcomes.acquired = waits.size();
  return run;
}

struct Objective {
  const char* text;
  double bound, share;
};

/// A search with steps of the length that the experiment gives them.
CapacityInterval search(SimulatedLock lock, const Objective& objective, double seconds,
                        std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<results::Threshold> objectives{
      results::parse_threshold(objective.text).value()};
  const double step = std::max(3.0, 20 * lock.service);
  const auto sections = [&](double rate) {
    return std::max(rate * step, 1 / (1 - objective.share));
  };
  std::map<double, std::vector<results::Run>> rates;
  CapacitySearch search(
      {.first_rate = 0.5 / lock.service, .ceiling = 1.5 / lock.service, .seconds = seconds},
      [&](double rate, bool) {
        const double began = lock.clock;
        auto& runs = rates[rate];
        runs.push_back(
            run_of(lock.waits(rate, static_cast<std::size_t>(std::ceil(sections(rate))), random)));
        const RateRuling ruling = judge_rate(rate, runs, objectives, {});
        return std::optional(
            CapacitySearch::Step{ruling.decision, lock.clock - began, ruling.enough});
      },
      [&](double rate) { return sections(rate) / rate + 0.5; });
  return search.run();
}

constexpr Objective kBrief{"acquire.p99<50ms", 0.05, 0.99};

/// Of 40 searches with different seeds.
struct Tally {
  int answered = 0;  ///< with both ends
  int right = 0;     ///< of these, with the capacity in between, but for 2 %
  int half = 0;      ///< that kept at least half of the capacity
  int too_high = 0;  ///< that kept more than the capacity, by more than 2 %
  std::vector<double> widths;

  explicit Tally(const SimulatedLock& lock, const Objective& objective, double seconds) {
    SimulatedLock later = lock;
    if (lock.slow_from < 1e9) later.service = lock.slow_service;
    const double truth = later.capacity(objective.bound, objective.share);
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const CapacityInterval found = search(lock, objective, seconds, seed);
      half += found.kept >= 0.5 * truth ? 1 : 0;
      too_high += found.kept > 1.02 * truth ? 1 : 0;
      if (!(found.kept > 0) || !std::isfinite(found.missed)) continue;
      ++answered;
      right += found.kept < 1.02 * truth && found.missed > 0.98 * truth ? 1 : 0;
      widths.push_back(found.missed / found.kept);
    }
    std::sort(widths.begin(), widths.end());
  }
};

TEST(CapacityOfASimulatedLock, LiesInTheInterval) {
  const Tally tally({}, kBrief, 300);
  EXPECT_GE(tally.answered, 38);
  EXPECT_GE(tally.right, tally.answered - 2);
  EXPECT_GE(tally.half, 34);
  ASSERT_FALSE(tally.widths.empty());
  EXPECT_LT(tally.widths[tally.widths.size() / 2], 1.6);
}

TEST(CapacityOfASimulatedLock, IsFoundIfItIsSlow) {
  const Tally tally({.service = 0.3}, {"acquire.p99<10s", 10, 0.99}, 1800);
  EXPECT_GE(tally.half, 38);
  EXPECT_LE(tally.too_high, 2);
}

TEST(CapacityOfASimulatedLock, IsFoundIfItStalls) {
  const Tally tally({.stall = 0.2, .stalls_per_second = 0.3}, kBrief, 600);
  EXPECT_GE(tally.answered, 20);
  EXPECT_GE(tally.right, tally.answered - 4);
  EXPECT_LE(tally.too_high, 4);
}

TEST(CapacityOfASimulatedLock, IsThatOfItsLaterPartIfItMissesLate) {
  // Kept at first, but no longer once a quarter of the time is over.
  const Tally tally({.slow_from = 75, .slow_service = 0.0095}, kBrief, 300);
  EXPECT_GE(tally.right, tally.answered - 4);
}

}  // namespace
}  // namespace lockbench::loadgen

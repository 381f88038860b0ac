#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "loadgen/experiments/capacity_experiment.h"
#include "loadgen/record/histogram.h"

namespace lockbench::loadgen {
namespace {

/// A fair lock with one key: Poisson arrivals and constant hold time (M/D/1). Waits by Lindley's
/// recursion.
struct SimulatedLock {
  double service = 0.0075;
  double stall = 0, stalls_per_second = 0;  ///< in seconds; by held time
  double slow_from = 1e9;                   ///< seconds after which it becomes slow
  double slow_service = 0;                  ///< slow hold time
  double clock = 0;

  /// Waits of this many sections after a warm-up.
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

  /// The rate at which the percentile equals the bound, by long simulations.
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

/// A search with the experiment's step lengths.
CapacityInterval search(SimulatedLock lock, const Objective& objective, double seconds,
                        std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<results::Threshold> objectives{
      results::parse_threshold(objective.text).value()};
  const double step = std::max(3.0, 20 * lock.service);
  const auto sections = [&](double rate, StepLength length) {
    const bool full = length == StepLength::full;
    return std::max(rate * step, full ? 1 / (1 - objective.share) : 1);
  };
  std::map<double, std::vector<results::Run>> rates;
  std::set<double> only_brief;
  return search_capacity(
      {.first_rate = 0.5 / lock.service,
       .ceiling = 1.5 / lock.service,
       .seconds = seconds,
       .bracket_seconds = std::min(25.0, seconds / 2)},
      [&](double rate, StepLength length) {
        const double began = lock.clock;
        auto& runs = rates[rate];
        const bool brief = length == StepLength::brief;
        if (!brief && only_brief.erase(rate) > 0) runs.clear();
        if (brief && runs.empty()) only_brief.insert(rate);
        runs.push_back(run_of(
            lock.waits(rate, static_cast<std::size_t>(std::ceil(sections(rate, length))), random)));
        const RateRuling ruling = judge_rate(rate, runs, objectives, {});
        return std::optional(SearchStep{ruling.decision, lock.clock - began, ruling.enough, false,
                                        judge_step(runs.back(), objectives).met});
      },
      [&](double rate, StepLength length) { return sections(rate, length) / rate + 0.5; });
}

constexpr Objective kBrief{"acquire.p99<50ms", 0.05, 0.99};

/// Results of 40 searches with different seeds.
struct Tally {
  int answered = 0;  ///< found both ends
  int right = 0;     ///< of these, with the capacity in between, within 2 %
  int half = 0;      ///< kept at least half of the capacity
  int too_high = 0;  ///< kept more than the capacity, by more than 2 %
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
  // The rate is kept at first, but not after a quarter of the time.
  const Tally tally({.slow_from = 75, .slow_service = 0.0095}, kBrief, 300);
  EXPECT_GE(tally.right, tally.answered - 4);
}

}  // namespace
}  // namespace lockbench::loadgen

#include "results/stats/comparison.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "results/stats/statistics.h"
#include "results/tables/show.h"
#include "tests/support/simulated_results.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using test::simulated_result;
using test::Simulation;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Difference& found(const ResultComparison& comparison, std::string_view figure) {
  const auto at = std::find_if(comparison.differences.begin(), comparison.differences.end(),
                               [&](const Difference& one) { return one.figure == figure; });
  if (at == comparison.differences.end()) throw std::runtime_error("not compared");
  return *at;
}

bool finds_anything(const ResultComparison& comparison) {
  return std::any_of(comparison.differences.begin(), comparison.differences.end(),
                     [](const Difference& one) { return is_shown(one.finding); });
}

using Change = void (*)(Result&);

/// Number of pairs out of 100 with a finding.
int alarms(
    const Simulation& a, const Simulation& b, Change change = [](Result&) {},
    const ComparisonOptions& options = {}) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Result of_a = simulated_result(a, 2 * seed);
    Result of_b = simulated_result(b, 2 * seed + 1);
    change(of_a);
    change(of_b);
    count += finds_anything(compare(of_a, of_b, options)) ? 1 : 0;
  }
  return count;
}

ComparisonOptions gates(const std::vector<std::string>& expressions) {
  ComparisonOptions options;
  for (const std::string& one : expressions) {
    options.fail_on.push_back(parse_regression(one).value());
  }
  return options;
}

TEST(Compare, SeldomFindsADifferenceWhereThereIsNone) {
  const std::vector<Simulation> settings = {
      {},
      {.strategies = 1, .repetitions = 4},
      {.strategies = 12, .repetitions = 10},
      {.repetitions = 10, .between_runs = 0.2, .within_runs = 0.3, .memory = 0.9},
  };
  for (const Simulation& setting : settings) {
    // 5 are expected; more than 10 occur in one of a hundred settings.
    EXPECT_LE(alarms(setting, setting), 10)
        << setting.strategies << " strategies, " << setting.repetitions << " repetitions";
  }
}

/// Leaves one figure of one strategy with fewer repetitions than all others.
void drop_handoffs(Result& result) {
  for (auto& run : result.runs) {
    if (run.strategy == "strategy-0" && run.repetition <= 2) run.handoff = {};
  }
}

TEST(Compare, AFigureOfFewRepetitionsDoesNotSilenceTheOthers) {
  Result a = simulated_result({}, 1);
  drop_handoffs(a);
  const auto comparison = compare(a, simulated_result({.slowdown = 2}, 2), {});
  EXPECT_EQ(found(comparison, "acquire.p99").finding, Finding::worse);
  EXPECT_EQ(found(comparison, "handoff.p50").finding, Finding::too_few);
  EXPECT_THAT(comparison.notes, Contains("handoff.p50: measured in fewer than 4 repetitions"));
}

/// The first strategy's gate.
const Gate& first_gate(const ResultComparison& comparison) {
  if (comparison.gates.empty()) throw std::runtime_error("no gate");
  return comparison.gates.front();
}

/// Number of pairs out of 100 in which the gate shows a regression of the first strategy.
int regressions(const Simulation& a, const Simulation& b, const ComparisonOptions& options) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto comparison =
        compare(simulated_result(a, 2 * seed), simulated_result(b, 2 * seed + 1), options);
    count += first_gate(comparison).outcome == Gate::Outcome::regression ? 1 : 0;
  }
  return count;
}

TEST(CompareGates, SeldomFindADifferenceWhereThereIsNone) {
  for (const Simulation& setting : {Simulation{}, Simulation{.strategies = 1, .repetitions = 4}}) {
    EXPECT_LE(alarms(
                  setting, setting, [](Result&) {}, gates({"acquire.p99>+0%"})),
              10)
        << setting.repetitions << " repetitions";
  }
}

TEST(CompareGates, SayWhatCouldHaveBeenFound) {
  const Simulation same{.strategies = 1, .between_runs = 0.06};
  const auto options = gates({"acquire.p99>+1%"});
  std::vector<double> detectable;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto comparison =
        compare(simulated_result(same, 2 * seed), simulated_result(same, 2 * seed + 1), options);
    const Gate& gate = first_gate(comparison);
    EXPECT_GT(*gate.detectable, 0.01);
    if (gate.outcome == Gate::Outcome::not_excluded) {
      EXPECT_GT(found(comparison, "acquire.p99").high, 0.01);
    }
    detectable.push_back(*gate.detectable);
  }
  Simulation slow = same;
  slow.slowdown = std::sqrt(1 + *median(detectable)) - 1;  // the p99 contains the slowdown twice
  const int count = regressions(same, slow, options);
  EXPECT_GE(count, 65);
  EXPECT_LE(count, 95);
}

TEST(CompareGates, WaitsThatWereCutOffAreNoEvidenceOfShortOnes) {
  const Result a = simulated_result({}, 1);
  Result b = simulated_result({}, 2);
  for (auto& run : b.runs) {
    run.acquire.at_least = {"p99"};
    run.acquire.buckets.clear();  // so there is no upper bound
  }
  const auto comparison = compare(a, b, gates({"acquire.p99>+300%"}));
  EXPECT_EQ(first_gate(comparison).outcome, Gate::Outcome::not_excluded);
  EXPECT_THAT(first_gate(comparison).undecided, HasSubstr("waits were cut off"));
  EXPECT_THAT(gate_lines(comparison), Contains(HasSubstr("waits were cut off")));
  EXPECT_THAT(comparison.notes, Contains(AllOf(HasSubstr("≥"), HasSubstr(": acquire.p99"))));
  EXPECT_EQ(first_gate(compare(b, a, gates({"acquire.p99>+300%"}))).outcome, Gate::Outcome::kept);
  const Result slow = simulated_result({.slowdown = 2}, 3);
  EXPECT_EQ(first_gate(compare(a, slow, gates({"acquire.p99>+10%"}))).outcome,
            Gate::Outcome::regression);
  EXPECT_EQ(first_gate(compare(b, slow, gates({"acquire.p99>+10%"}))).outcome,
            Gate::Outcome::not_excluded)
      << "A may have been as slow";
}

TEST(Compare, FindsATenthInMostPairs) {
  EXPECT_GE(alarms({}, {.slowdown = 0.1}), 80);
  EXPECT_GE(alarms({.repetitions = 10}, {.repetitions = 10, .slowdown = 0.1}), 95);
}

TEST(Compare, SaysWhichIsBetterByHowMuch) {
  const Simulation slower{.slowdown = 0.5};
  const auto comparison = compare(simulated_result({}, 1), simulated_result(slower, 2), {});
  const Difference& rate = found(comparison, "sections_per_second");
  EXPECT_EQ(rate.finding, Finding::worse);
  EXPECT_TRUE(rate.relative);
  EXPECT_NEAR(rate.change, 1 / 1.5 - 1, 0.05);
  EXPECT_LT(*rate.low, rate.change);
  EXPECT_GT(*rate.high, rate.change);
  EXPECT_LT(*rate.high, 0);
  EXPECT_NEAR(rate.a, 20'000, 1'000);
  const Difference& latency = found(comparison, "acquire.p99");
  EXPECT_EQ(latency.finding, Finding::worse);
  EXPECT_GT(*latency.low, 0);

  const auto back = compare(simulated_result(slower, 2), simulated_result({}, 1), {});
  EXPECT_EQ(found(back, "sections_per_second").finding, Finding::better);
  EXPECT_EQ(found(back, "acquire.p99").finding, Finding::better);
}

TEST(Compare, IntervalsAreThoseOfOneFigureAndFindingsOfAll) {
  Result a = simulated_result({.strategies = 12}, 1);
  Result b = simulated_result({.strategies = 12}, 2);
  const Difference among_many = found(compare(a, b, {}), "acquire.p99");
  for (Result* result : {&a, &b}) {
    std::erase_if(result->runs, [](const auto& run) { return run.strategy != "strategy-0"; });
  }
  const Difference among_few = found(compare(a, b, {}), "acquire.p99");
  EXPECT_EQ(among_many.low, among_few.low);
  EXPECT_EQ(among_many.high, among_few.high);
  EXPECT_LT(*among_few.p, *among_many.p);
}

TEST(Compare, CountsFromNothingAreFoundAndNotDividedBy) {
  const Result a = simulated_result({.repetitions = 10}, 1);
  Result b = a;
  for (auto& run : b.runs) run.audit.lost_updates = 40 + static_cast<unsigned>(run.repetition);
  const auto comparison = compare(a, b, {});
  const Difference& lost = found(comparison, "audit.lost_updates");
  EXPECT_FALSE(lost.relative);
  EXPECT_EQ(lost.a, 0);
  EXPECT_NEAR(lost.change, 45.5, 1e-9);
  EXPECT_EQ(lost.finding, Finding::worse);
  EXPECT_THROW(found(comparison, "leases_lost"), std::runtime_error) << "never on either side";
}

TEST(Compare, AFewLostByChanceShowNothing) {
  Result a = simulated_result({}, 1);
  Result b = a;
  for (auto& run : b.runs) run.leases_lost = run.repetition == 3 ? 1 : 0;
  EXPECT_FALSE(is_shown(found(compare(a, b, {}), "leases_lost").finding));
}

TEST(ComparisonTable, BoundsWhatFewRepetitionsLeaveOpen) {
  const Difference open{.strategy = "s",
                        .figure = "acquire.mean",
                        .a = 1,
                        .b = 2,
                        .relative = true,
                        .change = 1,
                        .low = -0.999,
                        .high = 1e30};
  ResultComparison comparison;
  comparison.differences = {open};
  EXPECT_EQ(chosen(comparison_block(comparison).table, {"interval"})->rows.at(0).at(0).text,
            "-99.9 % … > ×1k");
}

TEST(Compare, StrangeNumbersDoNoHarm) {
  Result a = simulated_result({}, 1);
  Result b = simulated_result({}, 2);
  b.runs[0].sections_per_second = std::numeric_limits<double>::quiet_NaN();
  b.runs[1].acquire.p50 = -1;
  b.runs[2].acquire.p99 = 1e-320;
  b.runs[3].handoff.p50 = 1e308;
  b.runs[4].repetition = std::numeric_limits<int>::max();
  EXPECT_NO_THROW(compare(a, b, {}));
  Result few = b;
  few.runs.resize(3);
  EXPECT_NO_THROW(compare(few, b, {}));
  few.runs = {simple_run("strategy-0")};
  EXPECT_NO_THROW(compare(few, b, {}));
  EXPECT_NO_THROW(compare(b, few, {}));
}

}  // namespace
}  // namespace lockbench::results

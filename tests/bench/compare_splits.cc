// How often does `lockbench compare` raise an alarm where nothing changed, and how often does its
// gate find a regression that is there? Deals recorded repetitions out at random to two results,
// and compares these. Exits 1 if more than 15 of 200 pairs without a difference raise an alarm, or
// if fewer than 80 % of the regressions are found. Usage: lockbench_compare_splits SAME.json
// FAST.json SLOW.json     of redis-queue, SLOW's p99 20 % above FAST's
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "results/file/json.h"
#include "results/stats/comparison.h"

namespace lockbench {
namespace {

using results::Result;
using results::Run;

constexpr int kPairs = 200, kMostAlarms = 15, kRegressions = 50;
constexpr double kLeastFound = 0.8;
constexpr std::size_t kEach = 10, kFew = 5;  ///< repetitions on each side

Result load(const std::string& path) {
  auto result = results::load(path);
  if (result) return *std::move(result);
  fmt::print(stderr, "{}\n", result.error());
  std::exit(1);
}

std::vector<int> repetitions_of(const Result& result) {
  std::set<int> all;
  for (const Run& run : result.runs) all.insert(run.repetition);
  return {all.begin(), all.end()};
}

/// The result with these repetitions only.
Result part(const Result& whole, std::span<const int> repetitions) {
  Result chosen = whole;
  std::erase_if(chosen.runs, [&](const Run& run) {
    return std::find(repetitions.begin(), repetitions.end(), run.repetition) == repetitions.end();
  });
  return chosen;
}

results::ComparisonOptions gated(bool with_gate) {
  results::ComparisonOptions options;
  if (with_gate) options.fail_on = {results::parse_regression("acquire.p99>+10%").value()};
  return options;
}

bool alarms(const results::ResultComparison& comparison) {
  return std::any_of(comparison.differences.begin(), comparison.differences.end(),
                     [](const auto& one) { return is_shown(one.finding); }) ||
         std::any_of(comparison.gates.begin(), comparison.gates.end(), [](const auto& gate) {
           return gate.outcome == results::Gate::Outcome::regression;
         });
}

/// `each`: repetitions on each side.
bool report_alarms(const Result& result, std::size_t each, bool with_gate) {
  std::mt19937_64 random(each);
  std::vector<int> order = repetitions_of(result);
  int count = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    std::shuffle(order.begin(), order.end(), random);
    const std::span<const int> all(order);
    const auto comparison = results::compare(
        part(result, all.first(each)), part(result, all.subspan(each, each)), gated(with_gate));
    count += alarms(comparison) ? 1 : 0;
  }
  fmt::print("no difference, {} and {} repetitions{}: {} of {} raise an alarm\n", each, each,
             with_gate ? ", with a gate" : "", count, kPairs);
  return count <= kMostAlarms;
}

/// For comparison: repetitions of two times.
void report_times(const Result& result, std::size_t each) {
  const std::vector<int> order = repetitions_of(result);
  const std::span<const int> all(order);
  int pairs = 0;
  int count = 0;
  for (std::size_t at = 0; at + 2 * each <= order.size(); at += each, ++pairs) {
    count += alarms(results::compare(part(result, all.subspan(at, each)),
                                     part(result, all.subspan(at + each, each)), gated(true)))
                 ? 1
                 : 0;
  }
  fmt::print("{} repetitions and the next {}: {} of {} raise an alarm\n", each, each, count, pairs);
}

/// Without the runs that a gate refuses.
Result load_valid(const std::string& path) {
  Result result = load(path);
  std::erase_if(result.runs, [](const Run& run) { return !run.generator.valid; });
  if (result.runs.size() >= 2 * kEach) return result;
  fmt::print(stderr, "{}: {} valid runs of {}\n", path, result.runs.size(), 2 * kEach);
  std::exit(1);
}

bool report_power(const Result& fast, const Result& slow) {
  std::mt19937_64 random(1);
  const auto drawn = [&](const Result& result) {
    std::vector<int> order = repetitions_of(result);
    std::shuffle(order.begin(), order.end(), random);
    return part(result, std::span<const int>(order).first(kEach));
  };
  int count = 0;
  for (int pair = 0; pair < kRegressions; ++pair) {
    const auto comparison = results::compare(drawn(fast), drawn(slow), gated(true));
    count += std::any_of(comparison.gates.begin(), comparison.gates.end(), [](const auto& gate) {
      return gate.outcome == results::Gate::Outcome::regression;
    });
  }
  const auto all = results::compare(fast, slow, gated(true));
  fmt::print("p99 {:+.1f} % over all valid repetitions; {} and {}: the gate finds it in {} of {}\n",
             100 * all.differences.at(all.gates.at(0).place.value()).change, kEach, kEach, count,
             kRegressions);
  return count >= kLeastFound * kRegressions;
}

int run(const std::vector<std::string>& paths) {
  if (paths.size() != 3) {
    fmt::print(stderr, "usage: lockbench_compare_splits SAME.json FAST.json SLOW.json\n");
    return EXIT_FAILURE;
  }
  const Result same = load(paths[0]);
  bool held = true;
  for (const std::size_t each : {kEach, kFew}) {
    for (const bool with_gate : {false, true}) held = report_alarms(same, each, with_gate) && held;
  }
  report_times(same, kFew);
  held = report_power(load_valid(paths[1]), load_valid(paths[2])) && held;
  return held ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace lockbench

int main(int argc, char** argv) {
  return lockbench::run(std::vector<std::string>(argv + 1, argv + argc));
}

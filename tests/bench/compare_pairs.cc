// How often does `lockbench compare` find something where there is nothing, and how often a real
// slowdown of a tenth?
// On recorded results of one configuration, given in the order in which they were made: each is
// compared with the next, as somebody would; the repetitions of both are dealt out in turn to two
// results, so that whatever happens to the machine happens to both; runs of a minute and more are
// cut into stretches, which are compared as single runs by their series alone. And on simulated
// ones. Each pair once as it is, and once with one side slowed down.
// Exits 1 if more than 5 of 100 comparisons of a kind raise a false alarm.
// Usage: lockbench_compare_pairs [RESULT.json...]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/file/load.h"
#include "results/stats/comparison.h"
#include "tests/support/simulated_results.h"

namespace lockbench {
namespace {

using results::Result;
using results::Run;

constexpr double kSlowdown = 0.1;
constexpr int kStretchSeconds = 10;
constexpr double kMostAlarms = 0.05;

struct Tally {
  int pairs = 0, alarms = 0, found = 0;

  double alarm_share() const { return pairs == 0 ? 0 : static_cast<double>(alarms) / pairs; }
};

bool finds(const Result& a, const Result& b, std::optional<results::Finding> wanted) {
  const auto comparison = results::compare(a, b, {});
  return std::any_of(comparison.differences.begin(), comparison.differences.end(),
                     [&](const results::Difference& one) {
                       return wanted ? one.finding == *wanted : results::is_shown(one.finding);
                     });
}

void slow_down(results::Distribution& distribution) {
  for (double* value :
       {&distribution.mean, &distribution.stddev, &distribution.p50, &distribution.p90,
        &distribution.p95, &distribution.p99, &distribution.p999, &distribution.max}) {
    *value *= 1 + kSlowdown;
  }
  for (auto& bucket : distribution.buckets) bucket.upper *= 1 + kSlowdown;
}

/// As if the lock took a tenth longer; what the workload sets stays.
Result slowed(Result result) {
  for (Run& run : result.runs) {
    run.sections_per_second /= 1 + kSlowdown;
    for (auto* distribution : {&run.acquire, &run.handoff, &run.release}) slow_down(*distribution);
    for (auto& point : run.series) {
      point.sections =
          static_cast<std::uint64_t>(static_cast<double>(point.sections) / (1 + kSlowdown));
      point.acquire_p50 *= 1 + kSlowdown;
      point.acquire_p99 *= 1 + kSlowdown;
    }
  }
  return result;
}

void tally(const Result& a, const Result& b, Tally& tally) {
  ++tally.pairs;
  tally.alarms += finds(a, b, std::nullopt) ? 1 : 0;
  tally.found += finds(a, slowed(b), results::Finding::worse) ? 1 : 0;
}

/// The repetitions of two results in the order in which they were made, in turn to one and the
/// other.
std::pair<Result, Result> dealt(const Result& first, const Result& second) {
  std::pair<Result, Result> hands;
  int most = 0;
  for (const Run& run : first.runs) most = std::max(most, run.repetition);
  for (const Result* result : {&first, &second}) {
    for (Run run : result->runs) {
      if (result == &second) run.repetition += most;
      auto& hand = run.repetition % 2 == 1 ? hands.first : hands.second;
      run.repetition = (run.repetition + 1) / 2;
      hand.runs.push_back(std::move(run));
    }
  }
  return hands;
}

/// A run that knows nothing but these points of its series.
Result stretch(const Run& run, std::size_t from, std::size_t length) {
  Run part;
  part.strategy = run.strategy;
  part.duration_seconds = static_cast<double>(length);
  for (std::size_t i = 0; i < length; ++i) {
    results::SeriesPoint point = run.series[from + i];
    point.t = static_cast<double>(i + 1);
    part.series.push_back(point);
    part.sections += point.sections;
    part.acquire.p50 += point.acquire_p50 / static_cast<double>(length);
    part.acquire.p99 += point.acquire_p99 / static_cast<double>(length);
  }
  part.acquire.count = part.sections;
  part.sections_per_second = static_cast<double>(part.sections) / part.duration_seconds;
  Result result;
  result.runs.push_back(std::move(part));
  return result;
}

void tally_stretches(const Result& result, Tally& count) {
  for (Run run : result.runs) {
    std::erase_if(run.series, [](const results::SeriesPoint& point) { return point.warmup; });
    const auto length = static_cast<std::size_t>(kStretchSeconds);
    if (run.series.size() < 6 * length) continue;
    for (std::size_t at = 0; at + 2 * length <= run.series.size(); at += length) {
      tally(stretch(run, at, length), stretch(run, at + length, length), count);
    }
  }
}

bool report(const std::string& what, const Tally& count) {
  fmt::print("{:<58} {:>5} {:>9} {:>6.1f} % {:>8.1f} %\n", what, count.pairs, count.alarms,
             100 * count.alarm_share(), count.pairs == 0 ? 0 : 100.0 * count.found / count.pairs);
  return count.alarm_share() <= kMostAlarms;
}

struct Setting {
  std::string name;
  test::Simulation simulation;
};

bool report_simulations() {
  constexpr std::uint64_t kPairs = 400;
  const std::vector<Setting> settings = {
      {"simulated: 3 strategies, 5 repetitions", {}},
      {"simulated: 17 strategies, 5 repetitions", {.strategies = 17}},
      {"simulated: 3 strategies, 10 repetitions", {.repetitions = 10}},
      {"simulated: calls differ by 2 % of their own", {.between_calls = 0.02}},
      {"simulated: a restless machine (20 %)",
       {.between_calls = 0.1, .between_runs = 0.2, .within_runs = 0.3, .memory = 0.9}},
      {"simulated: one run of 3 s", {.repetitions = 1}},
      {"simulated: one run of 60 s, seconds alike (0.9)",
       {.repetitions = 1, .seconds = 60, .memory = 0.9}},
      {"simulated: 3 repetitions of 10 s", {.repetitions = 3, .seconds = 10}},
  };
  bool held = true;
  for (const Setting& setting : settings) {
    Tally count;
    for (std::uint64_t pair = 0; pair < kPairs; ++pair) {
      tally(test::simulated_result(setting.simulation, 1000 + 2 * pair),
            test::simulated_result(setting.simulation, 1001 + 2 * pair), count);
    }
    held = report(setting.name, count) && held;
  }
  return held;
}

int run(const std::vector<std::string>& paths) {
  fmt::print("{:<58} {:>5} {:>9} {:>8} {:>10}\n", "", "pairs", "alarms", "share", "10 % found");
  Tally neighbours;
  Tally in_turn;
  Tally stretches;
  std::optional<Result> before;
  for (const std::string& path : paths) {
    auto result = results::load(path);
    if (!result) {
      fmt::print(stderr, "{}\n", result.error());
      return 1;
    }
    tally_stretches(*result, stretches);
    if (before && results::incompatibilities(*before, *result).empty()) {
      tally(*before, *result, neighbours);
      const auto [a, b] = dealt(*before, *result);
      tally(a, b, in_turn);
    }
    before = std::move(*result);
  }
  bool held = true;
  if (neighbours.pairs > 0) held = report("recorded: each result and the next", neighbours);
  if (in_turn.pairs > 0) {
    held = report("recorded: repetitions of both dealt out in turn", in_turn) && held;
  }
  if (stretches.pairs > 0) {
    held = report(fmt::format("recorded: {} s of a run and the next {} s, by their series",
                              kStretchSeconds, kStretchSeconds),
                  stretches) &&
           held;
  }
  held = report_simulations() && held;
  return held ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace lockbench

int main(int argc, char** argv) {
  return lockbench::run(std::vector<std::string>(argv + 1, argv + argc));
}

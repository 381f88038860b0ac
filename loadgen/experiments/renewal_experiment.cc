#include "loadgen/experiments/renewal_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "loadgen/experiments/held_locks.h"
#include "results/stats/statistics.h"
#include "strategies/registry.h"

namespace lockbench::loadgen {
namespace {

using Failure = tl::unexpected<std::string>;

using Measured = tl::expected<results::Run, std::string>;

class RenewalExperiment {
 public:
  RenewalExperiment(const RenewalPlan& plan, const OnStep& on_step, std::stop_token stop)
      : plan_(plan), on_step_(on_step), stop_(std::move(stop)) {}

  tl::expected<std::vector<results::Run>, std::string> measure(std::uint64_t held) {
    std::vector<results::Run> runs;
    std::vector<double> costs;
    for (int pair = 0; pair < plan_.pairs; ++pair) {
      on_step_(fmt::format("{} held: pair {} of {}", held, pair + 1, plan_.pairs));
      // Alternates which comes first, so that a drift of the machine affects both alike.
      double baseline = 0, beside = 0;
      for (const bool with_locks : {pair % 2 != 0, pair % 2 == 0}) {
        Measured run = with_locks ? beside_locks(held, pair) : foreground();
        if (!run) return Failure(run.error());
        (with_locks ? beside : baseline) = run->sections_per_second;
        run->load.held_locks = with_locks ? held : 0;
        run->repetition = with_locks ? pair + 1 : ++baselines_;
        runs.push_back(std::move(*run));
      }
      costs.push_back(baseline > 0 ? 1 - beside / baseline : 0);
    }
    const results::Costs cost{
        .throughput = results::Cost{*results::mean(costs), results::mean_interval(costs)}};
    for (results::Run& run : runs) {
      if (run.load.held_locks > 0U) run.costs = cost;
    }
    return runs;
  }

 private:
  Measured foreground() {
    RunPlan load = plan_.foreground;
    load.strategies = {find_strategy("redis-set-nx-lua")};
    RunReport report = run_once(std::move(load), ++runs_, on_step_, stop_);
    if (report.interrupted) return Failure("interrupted");
    if (report.runs.empty()) return Failure(report.not_started.front().reason);
    return std::move(report.runs.front());
  }

  Measured beside_locks(std::uint64_t held, int pair) {
    const RunPlan& others = plan_.foreground;
    const HeldLocksPlan locks_plan{.endpoints = others.endpoints,
                                   .options = others.workload.strategy,
                                   .key_prefix = fmt::format("lockbench:{}:{{held:", others.run_id),
                                   .count = held,
                                   .ttl = others.workload.ttl,
                                   .phase = phase_of_pair(pair, plan_.pairs)};
    RenewalFigures figures;
    HeldLocks locks(locks_plan, figures);
    const auto taken = locks.take(stop_);
    Measured run = Failure(taken ? "" : taken.error());
    double recorded = 0;
    if (taken) {
      const auto clock = make_system_env(0);
      const TimePoint begun = clock->now();
      figures.record(true);
      run = foreground();
      figures.record(false);
      recorded = seconds(clock->now() - begun);
    }
    // Locks that turn out to be lost only now count as well.
    locks.release();
    if (run) run->renewal = figures.renewal(recorded);
    return run;
  }

  const RenewalPlan& plan_;
  const OnStep& on_step_;
  const std::stop_token stop_;
  int runs_ = 0, baselines_ = 0;
};

}  // namespace

RenewalMeasured measure_renewal(const RenewalPlan& plan, const OnStep& on_step,
                                const std::stop_token& stop) {
  RenewalMeasured result;
  RenewalExperiment experiment(plan, on_step, stop);
  for (const std::uint64_t held : plan.held) {
    auto runs = experiment.measure(held);
    result.interrupted = stop.stop_requested();
    if (result.interrupted) return result;
    if (!runs) {
      result.error = runs.error();
      return result;
    }
    std::ranges::move(*runs, std::back_inserter(result.runs));
    if (plan.so_far) plan.so_far(result.runs);
  }
  return result;
}

}  // namespace lockbench::loadgen

#include "loadgen/experiments/renewal_experiment.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "loadgen/experiments/held_locks.h"
#include "results/stats/significance.h"
#include "results/stats/statistics.h"
#include "strategies/registry.h"
#include "strategies/store.h"

namespace lockbench::loadgen {
namespace {

using Failure = tl::unexpected<std::string>;

class RenewalExperiment {
 public:
  RenewalExperiment(const RenewalPlan& plan, const OnStep& on_step, std::stop_token stop)
      : plan_(plan), on_step_(on_step), stop_(std::move(stop)) {
    stores_ = make_stores(*find_strategy("redis-watchdog"), plan.foreground.endpoints,
                          plan.foreground.workload.strategy.command_timeout);
  }

  tl::expected<results::RenewalPoint, std::string> measure(std::uint64_t held) {
    RenewalFigures figures;
    results::RenewalPoint point{.strategy = "redis-watchdog", .held = held};
    std::vector<double> baselines, rates, overheads, cpu_shares;
    seconds_ = 0;
    for (int pair = 0; pair < plan_.pairs; ++pair) {
      on_step_(fmt::format("{} held: pair {} of {}", held, pair + 1, plan_.pairs));
      // Alternates which comes first, so that a drift of the machine affects both alike.
      tl::expected<double, std::string> baseline = 0.0;
      if (pair % 2 == 0) baseline = foreground();
      if (!baseline) return Failure(baseline.error());
      const auto with = with_locks(figures, held, phase_of_pair(pair, plan_.pairs));
      if (!with) return Failure(with.error());
      if (pair % 2 != 0) baseline = foreground();
      if (!baseline) return Failure(baseline.error());
      baselines.push_back(*baseline);
      rates.push_back(with->sections_per_second);
      overheads.push_back(*baseline > 0 ? 1 - with->sections_per_second / *baseline : 0);
      if (with->server_cpu_share) cpu_shares.push_back(*with->server_cpu_share);
    }
    const Counts counts = figures.measured();
    point.sections_per_second = *results::median(rates);
    point.baseline_sections_per_second = *results::median(baselines);
    point.overhead = *results::mean(overheads);
    point.overhead_interval = results::mean_interval(overheads);
    point.server_cpu_share = results::median(cpu_shares).value_or(0);
    point.renewals_per_second = static_cast<double>(counts[Count::renewals]) / seconds_;
    point.commands_per_second = static_cast<double>(counts[Count::commands]) / seconds_;
    point.failures = counts[Count::renewals_failed];
    point.lost = figures.lost();
    point.margin = to_distribution(figures.timing(Timing::renewal_margin));
    point.slip = to_distribution(figures.timing(Timing::renewal_slip));
    return point;
  }

 private:
  struct Measured {
    double sections_per_second = 0;
    std::optional<double> server_cpu_share;
  };

  /// Runs the other clients; returns their sections per second.
  tl::expected<double, std::string> foreground() {
    RunPlan load = plan_.foreground;
    load.strategies = {find_strategy("redis-set-nx-lua")};
    const RunReport report = run_once(std::move(load), ++runs_, on_step_, stop_);
    if (report.interrupted) return Failure("interrupted");
    if (report.runs.empty()) return Failure(report.not_started.front().reason);
    return report.runs.front().sections_per_second;
  }

  tl::expected<Measured, std::string> with_locks(RenewalFigures& figures, std::uint64_t held,
                                                 double phase) {
    const RunPlan& others = plan_.foreground;
    const HeldLocksPlan locks_plan{.endpoints = others.endpoints,
                                   .options = others.workload.strategy,
                                   .key_prefix = fmt::format("lockbench:{}:{{held:", others.run_id),
                                   .count = held,
                                   .ttl = others.workload.ttl,
                                   .phase = phase};
    HeldLocks locks(locks_plan, figures);
    tl::expected<Measured, std::string> measured = Failure("");
    if (auto taken = locks.take(stop_); !taken) {
      measured = Failure(taken.error());
    } else {
      measured = measure_held(figures);
    }
    locks.release();
    return measured;
  }

  tl::expected<Measured, std::string> measure_held(RenewalFigures& figures) {
    const auto clock = make_system_env(0);
    const auto cpu_before = cpu_seconds();
    const TimePoint begun = clock->now();
    figures.record(true);
    const auto rate = foreground();
    figures.record(false);
    const double taken = seconds(clock->now() - begun);
    const auto cpu_after = cpu_seconds();
    if (!rate) return Failure(rate.error());
    seconds_ += taken;
    Measured measured{.sections_per_second = *rate};
    if (cpu_before && cpu_after) measured.server_cpu_share = (*cpu_after - *cpu_before) / taken;
    return measured;
  }

  /// Nothing if the server does not report it.
  std::optional<double> cpu_seconds() {
    const auto facts = stores_.front()->facts();
    return facts ? std::optional(facts->cpu_seconds) : std::nullopt;
  }

  const RenewalPlan& plan_;
  const OnStep& on_step_;
  const std::stop_token stop_;
  std::vector<std::unique_ptr<Store>> stores_;
  int runs_ = 0;
  double seconds_ = 0;  ///< during which renewals were recorded
};

}  // namespace

RenewalMeasured measure_renewal(const RenewalPlan& plan, const OnStep& on_step,
                                const std::stop_token& stop) {
  RenewalMeasured result;
  RenewalExperiment experiment(plan, on_step, stop);
  for (const std::uint64_t held : plan.held) {
    auto point = experiment.measure(held);
    result.interrupted = stop.stop_requested();
    if (result.interrupted) return result;
    if (!point) {
      result.error = point.error();
      return result;
    }
    result.points.push_back(std::move(*point));
    if (plan.so_far) plan.so_far(result.points);
  }
  return result;
}

}  // namespace lockbench::loadgen

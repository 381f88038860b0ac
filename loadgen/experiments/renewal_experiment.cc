#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <utility>

#include "loadgen/experiments/costs.h"
#include "loadgen/record/recorder.h"
#include "results/stats/statistics.h"
#include "strategies/registry.h"

namespace lockbench::loadgen {
namespace {

using Done = tl::expected<void, std::string>;
using Failure = tl::unexpected<std::string>;
using Measured = tl::expected<results::Run, std::string>;

/// Records the cost of keeping locks. Thread-safe.
class RenewalFigures : public StrategyObserver {
 public:
  void on_renewal(const RenewalReport& report) override { recorder_.renewal(phase_, report); }
  void on_command() { recorder_.add(phase_, Count::commands); }
  /// For losses that are found at the release.
  void on_lost(std::uint64_t count) { recorder_.add(phase_, Count::renewals_lost, count); }
  /// Figures count only while this is on, except for losses, which count at any time.
  void record(bool on) { phase_ = on ? Phase::measured : Phase::unmeasured; }

  /// `recorded`: the seconds for which figures counted.
  results::Renewal renewal(double recorded) const {
    const Counts counts = recorder_.totals(Phase::measured);
    const auto timing = [&](Timing what) {
      return to_distribution(recorder_.histograms(Phase::measured)[what].snapshot());
    };
    return {.renewals = counts[Count::renewals],
            .failures = counts[Count::renewals_failed],
            .lost = recorder_.totals()[Count::renewals_lost],
            .commands_per_second = static_cast<double>(counts[Count::commands]) / recorded,
            .duration = timing(Timing::renewal_duration),
            .slip = timing(Timing::renewal_slip),
            .margin = timing(Timing::renewal_margin)};
  }

 private:
  std::atomic<Phase> phase_{Phase::unmeasured};
  Recorder recorder_{0};
};

Done interrupted() { return tl::unexpected<std::string>("interrupted"); }

/// Locks on different keys, held from take() to release(), and renewed by one scheduler for all, as
/// in a run. For one thread; plan and figures must outlive them.
class HeldLocks {
 public:
  HeldLocks(const HeldLocksPlan& plan, RenewalFigures& figures) : plan_(plan), figures_(figures) {
    services_.provide<EnvSource>(std::make_shared<EnvSource>(EnvSource{[this] {
      return std::make_unique<CountingEnv>(make_system_env(random_seed()),
                                           [this] { figures_.on_command(); });
    }}));
    // Owned by the caller, which outlives it.
    services_.provide<StrategyObserver>(
        std::shared_ptr<StrategyObserver>(&figures_, [](StrategyObserver*) {}));
    strategy_ = make_strategy(*find_strategy("redis-watchdog"), {.endpoints = plan_.endpoints,
                                                                 .options = plan_.options,
                                                                 .env = *env_,
                                                                 .services = services_});
  }

  /// Acquires all in one period, or as fast as the store allows; the error says why a lock could
  /// not be acquired.
  Done take(const std::stop_token& stop) {
    const TimePoint begun = env_->now();
    for (std::uint64_t lock = 0; lock < plan_.count; ++lock) {
      if (!wait_until(begun + plan_.taken_after(lock), stop)) return interrupted();
      const std::string key = plan_.key(lock);
      AcquireResult result = strategy_->acquire({.key = key,
                                                 .ttl = plan_.ttl,
                                                 .deadline = env_->now() + std::chrono::seconds(5),
                                                 .stop = stop});
      if (!result.lease) {
        return Failure(fmt::format("lock {} of {} could not be acquired: {}", lock + 1, plan_.count,
                                   result.reason.empty() ? "it is taken" : result.reason));
      }
      leases_.push_back(std::move(*result.lease));
    }
    if (!wait_until(begun + plan_.period(), stop)) return interrupted();
    return {};
  }

  /// Releases all; a lock that is no longer held counts as lost. Its commands are not counted, as
  /// they are not renewals.
  void release() {
    std::uint64_t lost = 0;
    for (const Lease& lease : leases_) {
      const bool known = lease.state->lost_at().has_value();
      const ReleaseResult released = strategy_->release(lease);
      // An earlier loss is already counted.
      if (released.outcome == ReleaseOutcome::not_owner && !known) ++lost;
    }
    figures_.on_lost(lost);
  }

 private:
  /// False: stopped.
  bool wait_until(TimePoint time, const std::stop_token& stop) {
    return env_->wait(nullptr, time, stop) != WaitResult::stopped;
  }

  const HeldLocksPlan& plan_;
  RenewalFigures& figures_;
  const std::unique_ptr<Env> env_ = make_system_env(random_seed());
  Services services_;
  std::unique_ptr<LockStrategy> strategy_;
  std::vector<Lease> leases_;
};

class RenewalExperiment {
 public:
  RenewalExperiment(const RenewalPlan& plan, const OnStep& on_step, std::stop_token stop)
      : plan_(plan), on_step_(on_step), stop_(std::move(stop)) {}

  RenewalMeasured measure() {
    RenewalMeasured result;
    for (const std::uint64_t held : plan_.held) {
      auto runs = measure(held);
      if (stop_.stop_requested()) return result;
      if (!runs) {
        result.error = runs.error();
        return result;
      }
      std::ranges::move(*runs, std::back_inserter(result.runs));
      if (plan_.so_far) plan_.so_far(result.runs);
    }
    return result;
  }

 private:
  tl::expected<std::vector<results::Run>, std::string> measure(std::uint64_t held) {
    std::vector<results::Run> runs;
    std::vector<double> costs;
    for (int pair = 0; pair < plan_.pairs; ++pair) {
      on_step_(fmt::format("{} held: pair {} of {}", held, pair + 1, plan_.pairs));
      // Alternates the order, so that a drift of the machine affects both alike.
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
    // Losses found only now count too.
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
  return RenewalExperiment(plan, on_step, stop).measure();
}

}  // namespace lockbench::loadgen

#include "loadgen/experiments/costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <memory>
#include <utility>

#include "loadgen/record/recorder.h"
#include "results/stats/statistics.h"
#include "strategies/registry.h"

namespace lockbench::loadgen {
namespace {

/// A node's cost is compared round by round; with fewer rounds its interval is too wide to be of
/// use. Faulty points are not compared like this, and their faults take time to heal.
constexpr int kRounds = 5, kFaultyRounds = 2;
constexpr Duration kThink = std::chrono::milliseconds(1);
constexpr std::array<std::string_view, 2> kReferences{"redis-set-nx-lua", "redis-wait"};
constexpr std::array<std::string_view, 2> kQuorums{"redlock", "redlock-parallel"};

int rounds_of(const QuorumPointPlan& point) {
  return point.nodes.healthy() ? kRounds : kFaultyRounds;
}

/// Quorums of `nodes` nodes with faults.
std::vector<results::Nodes> faulty(int nodes, const QuorumPlan& plan) {
  const int minority = (nodes - 1) / 2;
  std::vector<results::Nodes> found;
  const auto add = [&](std::uint64_t results::Nodes::*fault, const std::vector<int>& wanted) {
    for (const int number : wanted) {
      if (number == 0 || number > nodes) continue;
      results::Nodes& point = found.emplace_back();
      point.count = static_cast<std::uint64_t>(nodes);
      point.*fault = static_cast<std::uint64_t>(number);
      if (point.slow > 0) point.slow_seconds = seconds(plan.slow_by);
    }
  };
  const auto or_minority = [&](const std::vector<int>& wanted) {
    return wanted.empty() ? std::vector{minority} : wanted;
  };
  add(&results::Nodes::down, or_minority(plan.down));
  add(&results::Nodes::frozen, or_minority(plan.frozen));
  add(&results::Nodes::slow, or_minority(plan.slow));
  if (plan.down.empty() && minority > 0) add(&results::Nodes::down, {minority + 1});
  return found;
}

class QuorumExperiment {
 public:
  QuorumExperiment(const QuorumPlan& plan, QuorumNodes& nodes, const OnStep& on_step,
                   std::stop_token stop)
      : plan_(plan), nodes_(nodes), on_step_(on_step), stop_(std::move(stop)) {}

  CostsMeasured measure() {
    for (int round = 1; round <= kRounds; ++round) {
      for (std::size_t i = 0; i < points_.size() && !stop_.stop_requested() && !broken_; ++i) {
        if (round > rounds_of(points_[i])) continue;
        on_step_(fmt::format("round {} of {}, point {} of {}: {}", round, rounds_of(points_[i]),
                             i + 1, points_.size(), points_[i].text()));
        measure_point(points_[i], round);
        if (plan_.so_far) plan_.so_far(measured_.runs);
      }
    }
    return std::move(measured_);
  }

 private:
  void measure_point(const QuorumPointPlan& point, int round) {
    RunPlan load = plan_.run;
    load.strategies = {find_strategy(point.strategy)};
    load.workload.clients = point.clients;
    load.workload.keys = 1;
    // Without think time the releasing client gets the lock again before any other asks, and no
    // vote is ever split.
    if (point.clients > 1) load.workload.think = DurationDistribution::exponential(kThink);
    load.workload.duration /= rounds_of(point);
    load.endpoints = nodes_.endpoints(point.nodes);
    load.stops_servers = point.nodes.down + point.nodes.frozen > 0;
    // Clients connect while all nodes are healthy; the fault comes after.
    bool struck = true;
    load.before_load = [&] {
      if (!point.nodes.healthy()) struck = check(point, nodes_.inject(point.nodes));
    };
    load.after_load = [&] {
      // Without healthy nodes no further point can be measured.
      if (!point.nodes.healthy()) broken_ |= !check(point, nodes_.heal());
    };
    RunReport report = run_once(std::move(load), ++made_, on_step_, stop_);
    for (const results::Skipped& failed : report.not_started) complain(point, failed.reason);
    for (const results::Run& run : report.runs) {
      if (run.audit.verdict != results::Verdict::violated) continue;
      measured_.violated.push_back(point.text());
    }
    // A run without its fault says nothing about the point, nor does one that a stop cut short.
    if (!struck || report.interrupted) return;
    for (results::Run& run : report.runs) {
      // With faulty nodes, failures are part of the measurement.
      if (!point.nodes.healthy()) run.errors.clear();
      if (!run.errors.empty()) complain(point, run.errors.front());
      run.repetition = round;
      run.load.nodes = point.nodes;
      measured_.runs.push_back(std::move(run));
    }
    add_node_costs(measured_.runs);
  }

  bool check(const QuorumPointPlan& point, const tl::expected<void, std::string>& done) {
    if (!done) complain(point, done.error());
    return done.has_value();
  }

  void complain(const QuorumPointPlan& point, const std::string& why) {
    measured_.errors.push_back(fmt::format("{}: {}", point.text(), why));
  }

  const QuorumPlan& plan_;
  QuorumNodes& nodes_;
  const OnStep& on_step_;
  const std::stop_token stop_;
  const std::vector<QuorumPointPlan> points_ = points_of(plan_);
  CostsMeasured measured_;
  bool broken_ = false;
  int made_ = 0;
};

using Done = tl::expected<void, std::string>;
using Failure = tl::unexpected<std::string>;
using Measured = tl::expected<results::Run, std::string>;

Done interrupted() { return tl::unexpected<std::string>("interrupted"); }

/// Locks on different keys, held from take() to release(), and renewed by one scheduler for all, as
/// in a run, with what that costs. For one thread, apart from the observer; the plan must outlive
/// them.
class HeldLocks final : public StrategyObserver {
 public:
  explicit HeldLocks(const HeldLocksPlan& plan) : plan_(plan) {
    services_.provide<EnvSource>(std::make_shared<EnvSource>(EnvSource{[this] {
      return std::make_unique<CountingEnv>(make_system_env(random_seed()),
                                           [this] { recorder_.add(phase_, Count::commands); });
    }}));
    // Not owned: the services end before it.
    services_.provide<StrategyObserver>(
        std::shared_ptr<StrategyObserver>(this, [](StrategyObserver*) {}));
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
    for (const Lease& lease : leases_) {
      const bool known = lease.state->lost_at().has_value();
      const ReleaseResult released = strategy_->release(lease);
      // An earlier loss is already counted.
      if (released.outcome == ReleaseOutcome::not_owner && !known) {
        recorder_.add(phase_, Count::renewals_lost);
      }
    }
  }

  void on_renewal(const RenewalReport& report) override { recorder_.renewal(phase_, report); }
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
  /// False: stopped.
  bool wait_until(TimePoint time, const std::stop_token& stop) {
    return env_->wait(nullptr, time, stop) != WaitResult::stopped;
  }

  const HeldLocksPlan& plan_;
  std::atomic<Phase> phase_{Phase::unmeasured};
  Recorder recorder_{0};
  const std::unique_ptr<Env> env_ = make_system_env(random_seed());
  Services services_;
  std::unique_ptr<LockStrategy> strategy_;
  std::vector<Lease> leases_;
};

class RenewalExperiment {
 public:
  RenewalExperiment(const RenewalPlan& plan, const OnStep& on_step, std::stop_token stop)
      : plan_(plan), on_step_(on_step), stop_(std::move(stop)) {}

  CostsMeasured measure() {
    for (const std::uint64_t held : plan_.held) {
      const Done done = measure(held);
      if (stop_.stop_requested()) break;
      if (!done) {
        measured_.errors.push_back(done.error());
        break;
      }
    }
    return std::move(measured_);
  }

 private:
  /// Adds each pair when it has ended.
  Done measure(std::uint64_t held) {
    const std::size_t first = measured_.runs.size();
    std::vector<double> costs;
    for (int pair = 0; pair < plan_.pairs; ++pair) {
      on_step_(fmt::format("{} held: pair {} of {}", held, pair + 1, plan_.pairs));
      // Alternates the order, so that a drift of the machine affects both alike.
      double baseline = 0, beside = 0;
      std::vector<results::Run> both;
      for (const bool with_locks : {pair % 2 != 0, pair % 2 == 0}) {
        Measured run = with_locks ? beside_locks(held, pair) : foreground();
        if (!run) return Failure(run.error());
        (with_locks ? beside : baseline) = run->sections_per_second;
        run->load.held_locks = with_locks ? held : 0;
        run->repetition = with_locks ? pair + 1 : ++baselines_;
        both.push_back(std::move(*run));
      }
      std::ranges::move(both, std::back_inserter(measured_.runs));
      costs.push_back(baseline > 0 ? 1 - beside / baseline : 0);
      const results::Costs cost{
          .throughput = results::Cost{*results::mean(costs), results::mean_interval(costs)}};
      for (std::size_t i = first; i < measured_.runs.size(); ++i) {
        if (measured_.runs[i].load.held_locks > 0U) measured_.runs[i].costs = cost;
      }
      if (plan_.so_far) plan_.so_far(measured_.runs);
    }
    return {};
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
    HeldLocks locks(locks_plan);
    const auto taken = locks.take(stop_);
    Measured run = Failure(taken ? "" : taken.error());
    double recorded = 0;
    if (taken) {
      const auto clock = make_system_env(0);
      const TimePoint begun = clock->now();
      locks.record(true);
      run = foreground();
      locks.record(false);
      recorded = seconds(clock->now() - begun);
    }
    // Losses found only now count too.
    locks.release();
    if (run) run->renewal = locks.renewal(recorded);
    return run;
  }

  const RenewalPlan& plan_;
  const OnStep& on_step_;
  const std::stop_token stop_;
  CostsMeasured measured_;
  int runs_ = 0, baselines_ = 0;
};

}  // namespace

std::string QuorumPointPlan::text() const {
  std::string text =
      fmt::format("{}, {} node{}", strategy, nodes.count, nodes.count == 1 ? "" : "s");
  if (nodes.down > 0) text += fmt::format(", {} down", nodes.down);
  if (nodes.frozen > 0) text += fmt::format(", {} frozen", nodes.frozen);
  if (nodes.slow > 0) text += fmt::format(", {} slow", nodes.slow);
  return text + fmt::format(", {} client{}", clients, clients == 1 ? "" : "s");
}

std::vector<QuorumPointPlan> points_of(const QuorumPlan& plan) {
  std::vector<QuorumPointPlan> points;
  std::vector<std::string_view> quorums(kQuorums.begin(), kQuorums.end());
  quorums.insert(quorums.end(), plan.others.begin(), plan.others.end());
  const auto add_all = [&](const auto& strategies, const results::Nodes& nodes, int clients) {
    for (const std::string_view strategy : strategies) points.push_back({strategy, nodes, clients});
  };
  std::vector<int> loads = {1};
  if (plan.contending > 1) loads.push_back(plan.contending);
  for (const int clients : loads) {
    add_all(kReferences, {.count = 1}, clients);
    for (const int nodes : plan.nodes) {
      add_all(quorums, {.count = static_cast<std::uint64_t>(nodes)}, clients);
    }
  }
  for (const int nodes : plan.nodes) {
    for (const results::Nodes& some : faulty(nodes, plan)) add_all(quorums, some, 1);
  }
  return points;
}

void add_node_costs(std::vector<results::Run>& runs) {
  for (results::Run& run : runs) {
    std::vector<const results::Run*> alike;  // granted something
    std::uint64_t fewest = run.load.nodes->count;
    for (const results::Run& other : runs) {
      if (other.strategy != run.strategy || other.load.clients != run.load.clients ||
          !other.load.nodes->healthy()) {
        continue;
      }
      fewest = std::min(fewest, other.load.nodes->count);
      if (other.acquire.count > 0) alike.push_back(&other);
    }
    if (!run.load.nodes->healthy() || run.load.nodes->count == fewest) continue;
    const auto more = static_cast<double>(run.load.nodes->count - fewest);
    std::vector<double> costs, commands, noise;
    for (const results::Run* many : alike) {
      if (many->load.nodes != run.load.nodes) continue;
      for (const results::Run* few : alike) {
        if (few->load.nodes->count != fewest || few->repetition != many->repetition) continue;
        costs.push_back((many->acquire.p50 - few->acquire.p50) / more);
        commands.push_back((many->commands_per_section - few->commands_per_section) / more);
        // Either p50 is as exact as its histogram's buckets.
        noise.push_back(many->acquire.relative_error * many->acquire.p50 / more);
      }
    }
    if (costs.empty()) continue;
    run.costs = results::Costs{
        .node_seconds = results::Cost{*results::mean(costs),
                                      results::mean_interval(costs, *results::mean(noise))},
        .node_commands = results::mean(commands)};
  }
}

CostsMeasured measure_quorum(const QuorumPlan& plan, QuorumNodes& nodes, const OnStep& on_step,
                             const std::stop_token& stop) {
  return QuorumExperiment(plan, nodes, on_step, stop).measure();
}

CostsMeasured measure_renewal(const RenewalPlan& plan, const OnStep& on_step,
                              const std::stop_token& stop) {
  return RenewalExperiment(plan, on_step, stop).measure();
}

}  // namespace lockbench::loadgen

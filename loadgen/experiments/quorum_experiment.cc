#include "loadgen/experiments/quorum_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "results/stats/significance.h"
#include "results/stats/statistics.h"
#include "strategies/registry.h"

namespace lockbench::loadgen {
namespace {

/// The cost of a node is compared round by round: fewer leave its interval too wide to say
/// anything. Faulty points are not compared that way, and their faults take time to heal.
constexpr int kRounds = 5, kFaultyRounds = 2;
constexpr Duration kThink = std::chrono::milliseconds(1);
constexpr std::array<std::string_view, 2> kReferences{"redis-set-nx-lua", "redis-wait"};
constexpr std::array<std::string_view, 2> kQuorums{"redlock", "redlock-parallel"};

int rounds_of(const QuorumPointPlan& point) { return point.fault.any() ? kFaultyRounds : kRounds; }

/// The faults for a quorum of so many nodes. It survives all but the last one.
std::vector<QuorumFault> faults_of(int nodes) {
  const int minority = (nodes - 1) / 2;
  if (minority == 0) return {};
  return {{.down = minority}, {.frozen = minority}, {.slow = minority}, {.down = minority + 1}};
}

class QuorumExperiment {
 public:
  QuorumExperiment(const QuorumPlan& plan, QuorumNodes& nodes, const OnStep& on_step,
                   std::stop_token stop)
      : plan_(plan), nodes_(nodes), on_step_(on_step), stop_(std::move(stop)) {
    for (const QuorumPointPlan& point : points_of(plan)) {
      points_.push_back(point);
      sums_.emplace_back(point, plan.slow);
    }
  }

  QuorumMeasured measure() {
    for (int round = 1; round <= kRounds; ++round) {
      for (std::size_t i = 0; i < points_.size() && !stop_.stop_requested(); ++i) {
        if (round > rounds_of(points_[i])) continue;
        on_step_(fmt::format("round {} of {}, point {} of {}: {}", round, rounds_of(points_[i]),
                             i + 1, points_.size(), points_[i].text()));
        measure_point(points_[i], sums_[i]);
        if (plan_.so_far) plan_.so_far(points_of(sums_));
        if (broken_) return result();
      }
    }
    return result();
  }

 private:
  void measure_point(const QuorumPointPlan& point, QuorumPointSum& sum) {
    RunPlan load = plan_.run;
    load.strategies = {find_strategy(point.strategy)};
    load.workload.clients = point.clients;
    load.workload.keys = 1;
    // Without it the releasing client gets the lock again before any other asks, and no vote is
    // ever split.
    if (point.clients > 1) load.workload.think = DurationDistribution::exponential(kThink);
    load.workload.duration /= rounds_of(point);
    load.endpoints = nodes_.endpoints(point.nodes, point.fault);
    // Clients connect while all nodes are healthy; the fault comes after.
    bool struck = true;
    load.before_load = [&] {
      if (point.fault.any()) struck = check(point, nodes_.inject(point.nodes, point.fault));
    };
    load.after_load = [&] {
      if (point.fault.any()) heal(point);
    };
    const RunReport report = run_once(std::move(load), ++runs_, on_step_, stop_);
    for (const results::Skipped& failed : report.not_started) complain(point, failed.reason);
    for (const results::Run& run : report.runs) {
      if (run.audit.verdict == results::Verdict::violated) violated_.push_back(point.text());
    }
    // Without its fault a run says nothing else of the point.
    if (report.runs.empty() || !struck) return sum.add_nothing();
    for (const results::Run& run : report.runs) {
      sum.add(run);
      // With faulty nodes, failures are part of what is measured.
      if (!point.fault.any() && !run.errors.empty()) complain(point, run.errors.front());
    }
  }

  void heal(const QuorumPointPlan& point) {
    // Without healthy nodes no further point can be measured.
    if (!check(point, nodes_.heal())) broken_ = true;
  }

  bool check(const QuorumPointPlan& point, const tl::expected<void, std::string>& done) {
    if (!done) complain(point, done.error());
    return done.has_value();
  }

  void complain(const QuorumPointPlan& point, const std::string& why) {
    errors_.push_back(fmt::format("{}: {}", point.text(), why));
  }

  QuorumMeasured result() {
    return {.points = points_of(sums_),
            .errors = errors_,
            .violated = violated_,
            .interrupted = stop_.stop_requested()};
  }

  const QuorumPlan& plan_;
  QuorumNodes& nodes_;
  const OnStep& on_step_;
  const std::stop_token stop_;
  std::vector<QuorumPointPlan> points_;
  std::vector<QuorumPointSum> sums_;  ///< of each point
  std::vector<std::string> errors_, violated_;
  bool broken_ = false;
  int runs_ = 0;
};

void add_node_cost(const std::vector<QuorumPointSum>& sums, const QuorumPointSum& sum,
                   results::QuorumPoint& point) {
  const QuorumPointPlan& plan = sum.plan();
  const QuorumPointSum* few = nullptr;
  for (const QuorumPointSum& other : sums) {
    const bool alike =
        other.plan().strategy == plan.strategy && other.plan().clients == plan.clients;
    if (!alike || other.plan().fault.any()) continue;
    if (few == nullptr || other.plan().nodes < few->plan().nodes) few = &other;
  }
  if (few == nullptr || plan.fault.any() || few->plan().nodes == plan.nodes) return;
  const double more = plan.nodes - few->plan().nodes;
  std::vector<double> costs;
  for (std::size_t i = 0; i < std::min(sum.p50s().size(), few->p50s().size()); ++i) {
    const auto with_more = sum.p50s()[i], with_few = few->p50s()[i];
    if (with_more && with_few) costs.push_back((*with_more - *with_few) / more);
  }
  // Either p50 is as exact as its histogram's buckets.
  const double noise = point.acquire.relative_error * point.acquire.p50 / more;
  point.node_cost_seconds = results::mean(costs);
  point.node_cost_interval = results::mean_interval(costs, noise);
}

}  // namespace

std::string QuorumPointPlan::text() const {
  std::string text = fmt::format("{}, {} node{}", strategy, nodes, nodes == 1 ? "" : "s");
  if (fault.down > 0) text += fmt::format(", {} down", fault.down);
  if (fault.frozen > 0) text += fmt::format(", {} frozen", fault.frozen);
  if (fault.slow > 0) text += fmt::format(", {} slow", fault.slow);
  return text + fmt::format(", {} client{}", clients, clients == 1 ? "" : "s");
}

std::vector<QuorumPointPlan> points_of(const QuorumPlan& plan) {
  std::vector<QuorumPointPlan> points;
  const auto add_all = [&](const auto& strategies, int nodes, int clients, QuorumFault fault) {
    for (const std::string_view strategy : strategies) {
      points.push_back({strategy, nodes, clients, fault});
    }
  };
  std::vector<int> loads = {1};
  if (plan.contending > 1) loads.push_back(plan.contending);
  for (const int clients : loads) {
    add_all(kReferences, 1, clients, {});
    for (const int nodes : plan.nodes) add_all(kQuorums, nodes, clients, {});
  }
  for (const int nodes : plan.nodes) {
    for (const QuorumFault& fault : faults_of(nodes)) add_all(kQuorums, nodes, 1, fault);
  }
  return points;
}

void QuorumPointSum::add(const results::Run& run) {
  seconds_ += run.duration_seconds;
  sections_ += run.sections;
  commands_ += run.commands_per_section * static_cast<double>(run.sections);
  const results::Verdict verdict = run.audit.verdict;
  // Whether exclusion was promised or not. Nothing as long as no run was audited.
  if (verdict != results::Verdict::unaudited && verdict != results::Verdict::untested) {
    violated_ = violated_.value_or(false) || verdict != results::Verdict::exclusive;
  }
  const results::Outcomes& outcomes = run.outcomes;
  granted_ += outcomes.acquired;
  ended_ += outcomes.acquired + outcomes.timed_out + outcomes.refused + outcomes.failed +
            outcomes.unknown;
  acquire_.merge(to_snapshot(run.acquire));
  acquire_cut_.merge(to_censored_snapshot(run.acquire));
  p50s_.push_back(run.acquire.count > 0 ? std::optional(run.acquire.p50) : std::nullopt);
  if (!run.quorum) return;
  split_votes_ += run.quorum->split_votes;
  validity_.merge(to_snapshot(run.quorum->validity));
  if (run.quorum->validity.count > 0) {
    rounds_ += run.quorum->rounds_per_grant * static_cast<double>(run.quorum->validity.count);
  }
}

results::QuorumPoint QuorumPointSum::point() const {
  const auto per = [](double sum, double count) {
    return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
  };
  const auto sections = static_cast<double>(sections_);
  results::QuorumPoint point{.strategy = std::string(plan_.strategy),
                             .nodes = static_cast<std::uint64_t>(plan_.nodes),
                             .down = static_cast<std::uint64_t>(plan_.fault.down),
                             .frozen = static_cast<std::uint64_t>(plan_.fault.frozen),
                             .slow = static_cast<std::uint64_t>(plan_.fault.slow),
                             .clients = static_cast<std::uint64_t>(plan_.clients)};
  if (plan_.fault.slow > 0) point.slow_seconds = seconds(slow_);
  point.sections_per_second = per(sections, seconds_);
  point.acquire = to_distribution(acquire_, acquire_cut_);
  point.commands_per_section = per(commands_, sections);
  point.split_votes = split_votes_;
  point.validity = to_distribution(validity_);
  point.rounds_per_grant = per(rounds_, static_cast<double>(point.validity.count));
  point.granted_share =
      ended_ == 0 ? 0 : static_cast<double>(granted_) / static_cast<double>(ended_);
  point.violated = violated_;
  return point;
}

std::vector<results::QuorumPoint> points_of(const std::vector<QuorumPointSum>& sums) {
  std::vector<results::QuorumPoint> points;
  for (const QuorumPointSum& sum : sums) {
    if (!sum.any()) continue;
    points.push_back(sum.point());
    add_node_cost(sums, sum, points.back());
  }
  return points;
}

QuorumMeasured measure_quorum(const QuorumPlan& plan, QuorumNodes& nodes, const OnStep& on_step,
                              const std::stop_token& stop) {
  return QuorumExperiment(plan, nodes, on_step, stop).measure();
}

}  // namespace lockbench::loadgen

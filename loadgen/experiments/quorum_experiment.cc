#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "loadgen/experiments/costs.h"
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

  QuorumMeasured measure() {
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
    // A run without its fault says nothing about the point.
    if (!struck) return;
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
  QuorumMeasured measured_;
  bool broken_ = false;
  int made_ = 0;
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

QuorumMeasured measure_quorum(const QuorumPlan& plan, QuorumNodes& nodes, const OnStep& on_step,
                              const std::stop_token& stop) {
  return QuorumExperiment(plan, nodes, on_step, stop).measure();
}

}  // namespace lockbench::loadgen

#include "loadgen/experiments/capacity_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include "loadgen/experiments/capacity_limit.h"
#include "loadgen/experiments/capacity_search.h"
#include "loadgen/experiments/experiment.h"
#include "loadgen/run/named_load.h"
#include "results/tables/units.h"

namespace lockbench::loadgen {
namespace {

using results::human_number;
using results::human_seconds;

// Steps with fewer sections are not significant.
constexpr double kFewestSections = 20;
// With that many steps the default takes a minute and a half.
constexpr int kMostSteps = 26;

/// Whether `a` shows better than `b` why the rate failed.
bool shows_better(const results::CapacityStep& a, const results::CapacityStep& b) {
  return std::pair(!a.met, a.valid) > std::pair(!b.met, b.valid);
}

class Experiment {
 public:
  Experiment(const CapacityPlan& plan, const std::function<void(const std::string&)>& on_step,
             std::stop_token stop)
      : plan_(plan), on_step_(on_step), stop_(std::move(stop)) {
    results::Capacity& capacity = measured_.capacity;
    capacity.strategy = plan.strategy->name;
    for (const results::Threshold& threshold : plan.objective) {
      capacity.objective += (capacity.objective.empty() ? "" : " and ") + threshold.text;
    }
    capacity.clients = static_cast<std::uint64_t>(plan.workload.clients);
    capacity.keys = static_cast<std::uint64_t>(plan.workload.key_count());
    capacity.limit = "unknown";
    capacity.highest = std::numeric_limits<double>::quiet_NaN();
  }

  CapacityMeasured measure() {
    const auto contended = closed_loop("clients", plan_.workload.clients);
    if (contended) {
      search(contended->sections_per_second);
      sweep();
      name_what_limits();
      const auto alone = closed_loops_.find({"clients", 1});
      const ModelBasis basis{*contended, alone == closed_loops_.end() ? nullptr : &alone->second};
      measured_.capacity.models = model_capacity(plan_, measured_.capacity, basis);
    } else {
      measured_.capacity.limit_reason = "nothing could be measured";
    }
    plan_ahead();
    measured_.interrupted = stop_.stop_requested();
    return std::move(measured_);
  }

 private:
  std::optional<results::Run> run(const Workload& workload) {
    if (stop_.stop_requested()) return std::nullopt;
    RunPlan load;
    load.run_id = fmt::format("{}-{}", plan_.run_id, ++runs_);
    load.strategies = {plan_.strategy};
    load.workload = workload;
    load.workload.repeat = 1;
    load.workload.seed += static_cast<std::uint64_t>(runs_);
    load.endpoints = plan_.endpoints;
    load.counter_url = plan_.counter_url;
    load.private_cpu = plan_.private_cpu;
    load.watcher = plan_.watcher;
    ForwardWarnings observer(on_step_);
    RunReport report = run_plan(load, observer, stop_);
    for (const results::Skipped& failed : report.not_started) complain(failed.reason);
    if (report.runs.empty()) return std::nullopt;
    results::Run& result = report.runs.front();
    add_verdict(result.audit.verdict, measured_.capacity.violated);
    if (!result.errors.empty()) complain(result.errors.front());
    // A run that a stop cut short is not a step.
    if (stop_.stop_requested()) return std::nullopt;
    return std::move(result);
  }

  void complain(const std::string& why) {
    auto& errors = measured_.errors;
    const std::string line = fmt::format("{}: {}", plan_.strategy->name, why);
    if (std::find(errors.begin(), errors.end(), line) == errors.end()) errors.push_back(line);
  }

  void say(const std::string& what) { on_step_(fmt::format("{}: {}", plan_.strategy->name, what)); }

  std::optional<results::Run> closed_loop(const std::string& over, int at) {
    Workload workload = plan_.workload;
    workload.rate.reset();
    workload.duration = plan_.sweep_duration;
    (over == "clients" ? workload.clients : workload.keys) = at;
    auto result = run(workload);
    if (!result) return std::nullopt;
    measured_.capacity.sweep.push_back(
        {over, static_cast<std::uint64_t>(at), result->sections_per_second, result->acquire});
    say(fmt::format("closed loop, {} {}: {} sections/s", at, over,
                    human_number(result->sections_per_second)));
    closed_loops_.insert_or_assign({over, at}, *result);
    return result;
  }

  void search(double closed_loop_rate) {
    CapacitySearchPlan plan;
    const double step = seconds(plan_.workload.duration);
    plan.lowest_rate = kFewestSections / step;
    plan.first_rate = closed_loop_rate > 0 ? closed_loop_rate / 4 : plan.first_rate;
    plan.most_steps = kMostSteps;
    plan.seed = plan_.workload.seed;
    CapacitySearch search(
        plan, [this](std::string_view purpose, double rate) { return try_rate(purpose, rate); });
    const CapacityInterval found = search.run();
    measured_.capacity.lowest = found.held;
    measured_.capacity.highest = found.failed;
    measured_.capacity.confirmed = found.confirmed;
  }

  std::optional<bool> try_rate(std::string_view purpose, double rate) {
    Workload workload = plan_.workload;
    workload.rate = rate;
    const auto result = run(workload);
    if (!result) return std::nullopt;
    const results::CapacityStep step = judge_step(*result, purpose, rate, plan_.objective);
    const auto known = shown_.find(rate);
    if (known == shown_.end() || shows_better(step, known->second.first)) {
      shown_.insert_or_assign(rate, std::pair(step, *result));
    }
    measured_.capacity.steps.push_back(step);
    say(fmt::format("{} {}/s: {}, acquire p99 {}{}{}", purpose, human_number(rate),
                    step.met ? "kept" : "not kept",
                    step.acquire.count > 0 ? human_seconds(step.acquire.p99) : "–",
                    step.reason.empty() ? "" : ", ", step.reason));
    return step.met;
  }

  void sweep() {
    for (const int at : plan_.sweep_clients) {
      if (!closed_loops_.contains({"clients", at}) && !closed_loop("clients", at)) break;
    }
    for (const int at : plan_.sweep_keys) {
      if (!closed_loop("keys", at)) break;
    }
    auto& points = measured_.capacity.sweep;
    // The first point is the contended one, which may not have been requested.
    const auto& wanted = plan_.sweep_clients;
    if (std::find(wanted.begin(), wanted.end(), plan_.workload.clients) == wanted.end()) {
      points.erase(points.begin());
    }
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
      return std::pair(a.over, a.at) < std::pair(b.over, b.at);
    });
  }

  void name_what_limits() {
    results::Capacity& capacity = measured_.capacity;
    // NaN if no rate failed.
    const auto found =
        std::isfinite(capacity.highest) ? shown_.find(capacity.highest) : shown_.end();
    if (found == shown_.end()) {
      capacity.limit_reason = "no rate was found at which the objective is missed";
      return;
    }
    const auto& [step, run] = found->second;
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const std::size_t servers = urls_of(*plan_.strategy, plan_.endpoints).size();
    // Redis executes all commands on one thread.
    const double store_cores = plan_.strategy->backend == "redis"
                                   ? static_cast<double>(std::max<std::size_t>(servers, 1))
                                   : cores;
    std::size_t invalid = 0;
    std::string reason;
    for (const results::CapacityStep& one : capacity.steps) {
      if (one.valid) continue;
      ++invalid;
      reason = one.reason;
    }
    Limit limit = name_limit({.run = run,
                              .clients = capacity.clients,
                              .busiest_key_share = busiest_key_share(plan_.workload),
                              .excludes = run.audit.saw_no_violation(),
                              .store_cores = store_cores,
                              .cores = cores,
                              .step_valid = step.valid,
                              .steps = capacity.steps.size(),
                              .invalid_steps = invalid,
                              .invalid_reason = reason});
    capacity.limit = std::move(limit.name);
    capacity.limit_reason = std::move(limit.reason);
  }

  void plan_ahead() {
    results::Capacity& capacity = measured_.capacity;
    capacity.planned_rate = plan_.planned_rate;
    if (!plan_.planned_rate || capacity.lowest <= 0) return;
    capacity.utilisation = *plan_.planned_rate / capacity.lowest;
    capacity.headroom = capacity.lowest / *plan_.planned_rate - 1;
  }

  const CapacityPlan& plan_;
  const std::function<void(const std::string&)>& on_step_;
  const std::stop_token stop_;
  CapacityMeasured measured_;
  std::map<std::pair<std::string, int>, results::Run> closed_loops_;
  std::map<double, std::pair<results::CapacityStep, results::Run>> shown_;  ///< by their rate
  int runs_ = 0;
};

}  // namespace

CapacityMeasured measure_capacity(const CapacityPlan& plan,
                                  const std::function<void(const std::string& line)>& on_step,
                                  const std::stop_token& stop) {
  return Experiment(plan, on_step, stop).measure();
}

}  // namespace lockbench::loadgen

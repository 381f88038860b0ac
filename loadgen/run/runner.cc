#include "loadgen/run/runner.h"

#include <algorithm>
#include <thread>

#include "loadgen/run/live_run.h"

namespace lockbench::loadgen {

int generator_threads(const Workload& workload, bool beside_servers) {
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int usual = std::max(1, beside_servers ? cores - 1 : cores);
  return std::min(workload.threads.value_or(usual), workload.clients);
}

RunReport run_plans(std::span<const RunPlan> plans, ProgressObserver& observer,
                    const std::stop_token& stop) {
  RunReport report;
  Progress progress;
  int repetitions = 0;
  std::vector<std::pair<const RunPlan*, const Descriptor*>> order;
  for (const RunPlan& plan : plans) {
    progress.runs += static_cast<int>(plan.strategies.size()) * plan.workload.repeat;
    repetitions = std::max(repetitions, plan.workload.repeat);
    for (const Descriptor* strategy : plan.strategies) order.emplace_back(&plan, strategy);
  }
  for (int repetition = 1; repetition <= repetitions; ++repetition) {
    for (const auto& [plan, strategy] : order) {
      if (repetition > plan->workload.repeat) continue;
      if (stop.stop_requested()) break;
      progress.strategy = strategy->name;
      if (plans.size() > 1) progress.load = plan->workload.load;
      ++progress.run;
      if (plan->is_done && plan->is_done(*strategy, repetition)) continue;
      auto result = plan->maker
                        ? plan->maker(*plan, *strategy, repetition, progress, observer, stop)
                        : LiveRun(*plan, *strategy, repetition, progress, observer, stop).execute();
      if (result) {
        report.runs.push_back(std::move(*result));
      } else if (!stop.stop_requested()) {
        report.not_started.push_back({{std::string(strategy->name), result.error()}, plan->run_id});
      }
    }
    std::reverse(order.begin(), order.end());
  }
  report.interrupted = stop.stop_requested();
  return report;
}

RunReport run_plan(const RunPlan& plan, ProgressObserver& observer, const std::stop_token& stop) {
  return run_plans({&plan, 1}, observer, stop);
}

}  // namespace lockbench::loadgen

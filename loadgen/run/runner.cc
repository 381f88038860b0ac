#include "loadgen/run/runner.h"

#include "loadgen/run/live_run.h"

namespace lockbench::loadgen {

RunReport run_plan(const RunPlan& plan, ProgressObserver& observer, const std::stop_token& stop) {
  RunReport report;
  Progress progress;
  progress.runs = static_cast<int>(plan.strategies.size()) * plan.workload.repeat;
  for (int repetition = 1; repetition <= plan.workload.repeat; ++repetition) {
    for (const Descriptor* strategy : plan.strategies) {
      if (stop.stop_requested()) break;
      progress.strategy = strategy->name;
      ++progress.run;
      LiveRun run(plan, *strategy, repetition, progress, observer, stop);
      if (auto result = run.execute()) {
        report.runs.push_back(std::move(*result));
      } else if (!stop.stop_requested()) {
        report.not_started.push_back({std::string(strategy->name), result.error()});
      }
    }
  }
  report.interrupted = stop.stop_requested();
  return report;
}

}  // namespace lockbench::loadgen

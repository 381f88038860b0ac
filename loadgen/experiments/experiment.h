#pragma once

#include <fmt/format.h>

#include <functional>
#include <stop_token>
#include <string>

#include "loadgen/run/runner.h"

// What experiments that are made of runs have in common.
namespace lockbench::loadgen {

/// Called with one line about what is measured next.
using OnStep = std::function<void(const std::string& line)>;

/// Observes the runs of an experiment: forwards their warnings and drops their progress.
class ForwardWarnings : public ProgressObserver {
 public:
  /// `on_warning` must outlive it.
  explicit ForwardWarnings(const OnStep& on_warning) : on_warning_(on_warning) {}
  void on_progress(const Progress&) override {}
  void on_warning(const std::string& line) override { on_warning_(line); }

 private:
  const OnStep& on_warning_;
};

/// Makes run number `number` of an experiment, whose keys are its own.
inline RunReport run_once(RunPlan plan, int number, const OnStep& on_warning,
                          const std::stop_token& stop) {
  plan.run_id += fmt::format("-{}", number);
  ForwardWarnings observer(on_warning);
  return run_plan(plan, observer, stop);
}

}  // namespace lockbench::loadgen

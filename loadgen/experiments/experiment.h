#pragma once

#include <functional>
#include <optional>
#include <string>

#include "loadgen/run/runner.h"

// What experiments that are made of runs have in common.
namespace lockbench::loadgen {

/// Observes the runs of an experiment: forwards their warnings and drops their progress.
class ForwardWarnings : public ProgressObserver {
 public:
  /// `on_warning` must outlive it.
  explicit ForwardWarnings(const std::function<void(const std::string&)>& on_warning)
      : on_warning_(on_warning) {}
  void on_progress(const Progress&) override {}
  void on_warning(const std::string& line) override { on_warning_(line); }

 private:
  const std::function<void(const std::string&)>& on_warning_;
};

/// Adds a run's verdict to whether exclusion was broken in any of several runs, promised or not.
/// Stays empty as long as no run was audited.
inline void add_verdict(results::Verdict verdict, std::optional<bool>& broken) {
  if (verdict == results::Verdict::unaudited || verdict == results::Verdict::untested) return;
  broken = broken.value_or(false) || verdict != results::Verdict::exclusive;
}

}  // namespace lockbench::loadgen

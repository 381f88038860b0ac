#pragma once

#include <functional>
#include <string>

#include "loadgen/run/runner.h"

namespace lockbench::loadgen {

/// For an experiment that is made of runs: their progress is not the experiment's; what they warn
/// of is.
class Quiet : public ProgressObserver {
 public:
  /// `on_warning` outlives it.
  explicit Quiet(const std::function<void(const std::string&)>& on_warning)
      : on_warning_(on_warning) {}
  void on_progress(const Progress&) override {}
  void on_warning(const std::string& line) override { on_warning_(line); }

 private:
  const std::function<void(const std::string&)>& on_warning_;
};

}  // namespace lockbench::loadgen

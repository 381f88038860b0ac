#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/console/console.h"
#include "cli/options/options.h"
#include "cli/options/select.h"
#include "exporter/exporter.h"
#include "loadgen/run/run_watcher.h"

namespace lockbench::cli {

/// What --metrics-listen, --linger and --push ask for, during one command.
class Metrics {
 public:
  /// Serves from now on, if that is asked for; every series of the selected strategies is there.
  /// Signals must be prepared before. The error names the option.
  static tl::expected<Metrics, UsageError> start(const RunOptions& options,
                                                 const std::vector<Selected>& selected,
                                                 const std::string& run_id, Console& console);

  /// To be told of runs; null if nobody asks for metrics.
  loadgen::RunWatcher* watcher() { return metrics(); }
  exporter::RunMetrics* metrics() { return exporter_ ? &exporter_->metrics() : nullptr; }

  /// Once the runs are over. False, and a warning, if what was asked for failed.
  bool push(Console& console);
  /// Serves on for as long as was asked for, or until the stop.
  void linger(Console& console, const std::stop_token& stop);

 private:
  Duration linger_{};
  std::optional<exporter::PushTarget> push_;
  bool serving_ = false;
  std::unique_ptr<exporter::Exporter> exporter_;
};

}  // namespace lockbench::cli

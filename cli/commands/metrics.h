#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/console/console.h"
#include "cli/console/deploy.h"
#include "cli/options/load_options.h"
#include "exporter/exporter.h"
#include "loadgen/run/runner.h"

namespace lockbench::cli {

/// Of several loads each has its own: in the record of the options, what the user left to them
/// becomes null.
void leave_to_the_loads(const LoadOptions& options, OptionRecord& record);

/// Carries out --metrics-listen, --linger and --push during one command.
class Metrics {
 public:
  /// Starts to serve, if --metrics-listen is given; every series of the selected strategies exists
  /// from then on. Signals must be prepared before. A UsageError names the option.
  static Metrics start(const LoadOptions& options, const std::vector<Selected>& selected,
                       const std::string& run_id, Console& console);

  /// Observes runs; null if no metrics are asked for.
  exporter::RunMetrics* watcher() { return metrics_.get(); }

  /// Pushes once the runs are over. False, with a warning, if --push failed.
  bool push(Console& console);
  /// Serves for another --linger, or until the stop.
  void linger(Console& console, const std::stop_token& stop);

 private:
  Duration linger_{};
  std::optional<exporter::PushTarget> push_;
  std::shared_ptr<exporter::RunMetrics> metrics_;
  std::unique_ptr<exporter::Exporter> exporter_;
};

}  // namespace lockbench::cli

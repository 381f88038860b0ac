#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/console/console.h"
#include "cli/console/signals.h"
#include "cli/options/load_options.h"
#include "cli/options/select.h"
#include "deployment/deployment.h"
#include "results/file/model.h"

namespace lockbench::cli {

/// What a command needs while it works: a console, and a stop that signals request. It prepares the
/// signals, so it is made before the first thread; it outlives the users of its console. Only the
/// console is thread-safe.
class Session {
 public:
  /// `status_line` allows one on a terminal. `stopping` is the message at the first signal. A
  /// UsageError if the events cannot be written.
  explicit Session(const OutputOptions& output, bool status_line = true,
                   std::string stopping = std::string(kSavingAndStopping));

  Console& console() { return console_; }
  std::stop_token stop() const { return stop_.get_token(); }
  bool stopped() const { return stop_.stop_requested(); }

  /// Calls deploy(), and tells what the user should know before the load: a build that distorts the
  /// figures, warnings, skipped strategies. Nothing if a stop came first.
  std::optional<deployment::Deployment> deploy(const LoadOptions& options,
                                               std::vector<Selected>& selected,
                                               std::vector<results::Skipped>& skipped);

  /// Warns if such a build distorts the figures.
  void warn_of(const results::Build& build);

  /// Says that there is nothing to save after the stop. Returns the exit code.
  int interrupted_early();

 private:
  Console console_;
  const std::stop_source stop_;
  std::optional<StopOnSignal> on_signal_;
};

}  // namespace lockbench::cli

#pragma once

#include <stop_token>

#include "cli/console/console.h"
#include "cli/console/deploy.h"
#include "cli/options/load_options.h"
#include "deployment/deployment.h"
#include "strategies/thread.h"

namespace lockbench::cli {

/// Blocks SIGINT, SIGTERM and SIGHUP (unless nohup ignores it), which StopOnSignal reads, and
/// ignores SIGPIPE and SIGXFSZ. Call it before the first thread is created, as threads inherit the
/// signal mask.
void prepare_signals();

/// The message of most commands at the first signal.
inline constexpr std::string_view kSavingAndStopping =
    "stopping: saving what was measured; press Ctrl-C again to kill";

/// Turns the first of these signals into a stop; the second one kills the process, even if the
/// console is blocked. Has its own thread; `console` must outlive it. Throws
/// std::runtime_error if the process has no more file descriptors or threads.
class StopOnSignal {
 public:
  /// `note` is shown at the first signal.
  StopOnSignal(std::stop_source stop, Console& console,
               std::string note = std::string(kSavingAndStopping));
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal();

 private:
  void watch();

  std::stop_source stop_;
  Console& console_;
  const std::string note_;
  int signals_ = -1, end_ = -1;
  Thread thread_;
};

/// What a command needs while it works: a console, and a stop that signals request. It prepares the
/// signals, so make it before the first thread; it must outlive the users of its console. Only the
/// console is thread-safe.
class Session {
 public:
  /// `status_line` allows a status line on a terminal. `stopping` is the message at the first
  /// signal. A UsageError if --events cannot be written.
  explicit Session(const OutputOptions& output, bool status_line = true,
                   std::string stopping = std::string(kSavingAndStopping));

  Console& console() { return console_; }
  std::stop_token stop() const { return stop_.get_token(); }
  bool stopped() const { return stop_.stop_requested(); }

  /// Calls deploy(), and reports what the user should know before the load: a build that distorts
  /// the figures, warnings, skipped strategies. Nothing if a stop came first.
  std::optional<deployment::Deployment> deploy(const LoadOptions& options,
                                               std::vector<Selected>& selected,
                                               std::vector<results::Skipped>& skipped);

  /// Warns of a build that distorts the figures.
  void warn_of_build();

  /// Says that there is nothing to save after the stop. Returns the exit code.
  int interrupted_early();

 private:
  Console console_;
  const std::stop_source stop_;
  std::optional<StopOnSignal> on_signal_;
};

}  // namespace lockbench::cli

#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "cli/console/console.h"
#include "strategies/thread.h"

namespace lockbench::cli {

/// Blocks SIGINT, SIGTERM and SIGHUP (unless nohup ignores it) for a StopOnSignal to take, and
/// ignores SIGPIPE. Call it before the first thread is created, as threads inherit the signal mask.
void prepare_signals();

/// The message of most commands at the first signal.
inline constexpr std::string_view kSavingAndStopping =
    "stopping: saving what was measured; press Ctrl-C again to kill";

/// Turns the first of these signals into a stop; the second one kills the process, even if the
/// console is blocked. Has a thread of its own; `console` must outlive it. Throws
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

}  // namespace lockbench::cli

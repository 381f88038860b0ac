#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "cli/console/console.h"

namespace lockbench::cli {

/// Makes SIGINT, SIGTERM and SIGHUP (unless nohup ignores it) wait for a StopOnSignal and ignores
/// SIGPIPE. Must come before the first thread is made, as threads inherit what is blocked.
void prepare_signals();

/// What most commands answer a signal with.
inline constexpr std::string_view kSavingAndStopping =
    "stopping: saving what was measured; press Ctrl-C again to kill";

/// Turns the first of these signals into a stop and lets the second one kill, even if nothing can
/// be written to the console. One thread of its own; `console` must outlive it. Throws
/// std::system_error if the kernel has no more descriptors.
class StopOnSignal {
 public:
  /// `note` is shown when the first one comes.
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
  std::thread thread_;
};

}  // namespace lockbench::cli

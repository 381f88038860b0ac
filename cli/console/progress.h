#pragma once

#include <functional>
#include <string>

#include "cli/console/console.h"
#include "loadgen/run/runner.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// "redis-setnx (3/12) measuring 45 %, 12.3k sections/s, 2 failed"
std::string progress_text(const loadgen::Progress& progress);

/// Shows the progress of the runs: in place on a terminal, a line every 5 s elsewhere.
class ProgressView : public loadgen::ProgressObserver {
 public:
  /// `console` must outlive the view; `now` is the clock for these 5 s.
  ProgressView(Console& console, std::function<TimePoint()> now)
      : console_(console), now_(std::move(now)) {}

  void on_progress(const loadgen::Progress& progress) override;
  void on_warning(const std::string& line) override;

 private:
  Console& console_;
  std::function<TimePoint()> now_;
  TimePoint next_line_ = TimePoint::min();
};

}  // namespace lockbench::cli

#pragma once

#include <functional>
#include <string>

#include "cli/console/console.h"
#include "loadgen/run/runner.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// "redis-setnx (3/12) measuring 45 %, 12.3k sections/s, 2 failed"
std::string progress_text(const loadgen::Progress& progress);

/// The same behind a bar that shows how much of all runs is done; never wider than `width` columns.
std::string progress_bar(const loadgen::Progress& progress, int width);

/// Shows how far the runs are: a bar on a terminal, a line every few seconds elsewhere.
class ProgressView : public loadgen::ProgressObserver {
 public:
  /// `console` must outlive the view; `now` is the clock that spaces the lines.
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

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/console/console.h"
#include "loadgen/run/runner.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// Says when a probed strategy begins to fail and when it works again: one line each, however often
/// it fails in between. For one runner.
class ProbeHealth : public loadgen::ProgressObserver {
 public:
  /// `console` must outlive it.
  ProbeHealth(std::string_view strategy, Console& console)
      : strategy_(strategy), console_(console) {}

  void on_progress(const loadgen::Progress& progress) override;
  void on_warning(const std::string& line) override;
  /// The store could not even be reached.
  void not_reached(const std::string& why);

 private:
  void fails(const std::string& how);
  void works();

  const std::string strategy_;
  Console& console_;
  std::uint64_t sections_ = 0, failed_ = 0, in_vain_ = 0;  ///< of the run under way
  std::optional<TimePoint> failing_since_;
};

}  // namespace lockbench::cli

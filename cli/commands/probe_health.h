#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/console/console.h"
#include "loadgen/run/runner.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// Tells when a probed strategy begins to fail and when it works again: one line each, however many
/// failures there are in between. One per runner.
class ProbeHealth : public loadgen::ProgressObserver {
 public:
  /// `console` must outlive it.
  ProbeHealth(std::string_view strategy, Console& console)
      : strategy_(strategy), console_(console) {}

  void on_progress(const loadgen::Progress& progress) override;
  void on_warning(const std::string& line) override;
  /// The store could not be reached.
  void on_unreachable(const std::string& why);

 private:
  void fails(const std::string& how);
  void works();

  const std::string strategy_;
  Console& console_;
  std::uint64_t sections_ = 0, failed_ = 0, timed_out_ = 0;  ///< of the current run
  std::optional<TimePoint> failing_since_;
};

}  // namespace lockbench::cli

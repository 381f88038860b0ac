#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loadgen/record/histogram.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

/// What a run knows about itself when it is over.
struct RunEvidence {
  double wall_seconds = 0;             ///< from the start of the load, by the monotonic clock
  double wall_clock_jump_seconds = 0;  ///< by how much the time of day strayed from it
  double cpu_seconds = 0;              ///< of this process, meanwhile
  int cores = 1;
  bool has_store = true;       ///< false: the lock itself lives in this process
  double overrun_seconds = 0;  ///< how late the runner noticed that the time was up
  /// Open loop: actual start after the intended one. Without what is a fault's own doing.
  HistogramSnapshot schedule_lag;
  HistogramSnapshot wake_lag;  ///< the same for clients that were idle and had to wake up
  HistogramSnapshot acquire;
  std::uint64_t overflowed_samples = 0;
  std::vector<std::string> restarted_servers;
};

/// How the reason begins that is no fault of the generator's: with all clients busy, sections began
/// late.
inline constexpr std::string_view kNotTheLoadAskedFor = "the load was not the one asked for";

/// Says whether the figures are those of the lock, or of the generator and its machine: every
/// reason why they are not is a line.
results::Generator certify(const RunEvidence& evidence);

}  // namespace lockbench::loadgen

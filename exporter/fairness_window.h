#pragma once

#include <cstdint>
#include <vector>

#include "strategies/duration.h"

namespace lockbench::exporter {

/// Jain's index over what the clients of a run got lately, so that a long run shows a client that
/// starves now. Not thread-safe.
class FairnessWindow {
 public:
  /// The window is at least so long, and at most twice as long if it is read that often.
  static constexpr Duration kShortest = std::chrono::seconds(30);

  /// Of a run of so many clients that begins now.
  FairnessWindow(std::size_t clients, TimePoint now);

  /// `sections`: of each client since the run began. 0 if there were none lately.
  double jain(const std::vector<std::uint64_t>& sections, TimePoint now);

 private:
  std::vector<std::uint64_t> older_, newer_;  ///< earlier readings
  TimePoint newer_at_;
};

}  // namespace lockbench::exporter

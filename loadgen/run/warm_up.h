#pragma once

#include <cstdint>
#include <optional>

#include "strategies/duration.h"
#include "strategies/env.h"

namespace lockbench::loadgen {

/// How long the load runs before it is measured: as long as asked for, or, before servers that get
/// faster while they run, until its throughput is steady. For one thread.
class WarmUp {
 public:
  static constexpr Duration kInterval = std::chrono::milliseconds(500);
  /// Of two intervals, of the larger one.
  static constexpr double kSteady = 0.2;
  static constexpr Duration kLongest = std::chrono::seconds(5);

  /// `asked` zero: there is no warm-up, steady or not.
  WarmUp(TimePoint start, Duration asked, bool until_steady);

  /// When it is over at the latest.
  TimePoint latest_end() const { return latest_end_; }
  /// When to call is_steady() next; nothing if it ends at its latest end.
  std::optional<TimePoint> next_look() const { return next_look_; }
  /// Whether it is over at `now`. `sections`: all so far.
  bool is_steady(TimePoint now, std::uint64_t sections);

 private:
  TimePoint earliest_end_, latest_end_;
  std::optional<TimePoint> next_look_;
  std::uint64_t sections_ = 0;               ///< at the latest look
  std::optional<std::uint64_t> throughput_;  ///< of the interval before
};

}  // namespace lockbench::loadgen

#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "strategies/duration.h"

namespace lockbench::loadgen {

/// What becomes of a throughput while something strikes it: from readings of a count that grows.
/// Compares short windows with the rate before. For one thread.
class DipMeter {
 public:
  /// `before` in counts per second, above 0.
  explicit DipMeter(double before);
  /// Compares with what came in so much time; nothing if that is too little to tell a rate.
  static std::optional<DipMeter> after(Duration time, std::uint64_t count);

  /// How long a window is: long enough for some counts, so that chance alone makes no dip.
  Duration window() const { return window_; }

  /// In the order of time. Windows begin with the first reading.
  void read(TimePoint now, std::uint64_t count);
  /// What matters from now on is how soon throughput is back.
  void healed(TimePoint now);

  /// The beginning of the first whole window, since the first reading or since it was healed, with
  /// at least 90 % of the rate before.
  std::optional<TimePoint> back_at() const { return back_at_; }
  /// Of the worst whole window until it was healed and back, as a share of the rate before; above 1
  /// if there was no dip. 1 before the first whole window.
  double lowest_share() const { return lowest_share_.value_or(1); }

 private:
  struct Reading {
    TimePoint at;
    std::uint64_t count;
  };

  const double before_;
  const Duration window_;
  std::deque<Reading> readings_;  ///< a window's, at most one more
  std::optional<TimePoint> healed_at_;
  std::optional<TimePoint> back_at_;
  std::optional<double> lowest_share_;
};

}  // namespace lockbench::loadgen

#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "strategies/duration.h"

namespace lockbench::loadgen {

/// Measures how far throughput falls during a fault and when it recovers, from readings of a
/// growing count. Compares sliding windows with the rate before the fault. For one thread.
class RecoveryMeter {
 public:
  /// `before` in counts per second, above 0.
  explicit RecoveryMeter(double before);
  /// With the rate of `count` in `time`; nothing if that is too little to tell a rate.
  static std::optional<RecoveryMeter> after(Duration time, std::uint64_t count);

  /// Length of a window: about 100 counts at the rate before, so that chance makes no dip.
  Duration window() const { return window_; }

  /// In the order of time. Windows begin with the first reading.
  void read(TimePoint now, std::uint64_t count);
  /// From here on recovery is measured.
  void healed(TimePoint now);

  /// The start of the first whole window, since the first reading or since healed(), with at least
  /// 90 % of the rate before.
  std::optional<TimePoint> back_at() const { return back_at_; }
  /// Throughput of the worst whole window until recovery, as a share of the rate before; above 1 if
  /// there was no dip. 1 before the first whole window.
  double lowest_share() const { return lowest_share_.value_or(1); }

 private:
  struct Reading {
    TimePoint at;
    std::uint64_t count;
  };

  const double before_;
  const Duration window_;
  std::deque<Reading> readings_;  ///< those of one window, and at most one older
  std::optional<TimePoint> healed_at_;
  std::optional<TimePoint> back_at_;
  std::optional<double> lowest_share_;
};

}  // namespace lockbench::loadgen

#pragma once

#include <cstddef>
#include <vector>

#include "strategies/duration.h"

namespace lockbench::loadgen::cluster {

/// What one exchange with a rank of known time says: at `local`, the other clock was ahead of ours
/// by `offset`, give or take `bound`.
struct ClockSample {
  TimePoint local;
  Duration offset{}, bound{};
};

/// From when a question left, when it was answered by the other clock, and when the answer came.
/// `error`: how well the other clock is known itself.
ClockSample sample_of(TimePoint asked, TimePoint answered, TimePoint received, Duration error = {});

/// How far another clock is ahead of ours, as a line in time: offset and drift, from the samples
/// that tell most. The true offset lies within `bound` as long as both clocks run evenly.
class ClockModel {
 public:
  /// Of our own clock.
  static ClockModel own() {
    ClockModel model;
    model.own_ = true;
    return model;
  }

  /// Samples of any quality, in their order. Keeps a bounded number of them.
  void add(const ClockSample& sample);

  struct Estimate {
    Duration offset{}, bound{};
  };
  /// Without a sample the bound is a day.
  Estimate at(TimePoint local) const;

  /// Whether the drift is known to a tenth of what clocks differ by.
  bool knows_drift() const { return own_ || drift_error_ <= kMostDrift / 10; }
  /// By what share the other clock runs faster than ours.
  double drift() const { return drift_; }

 private:
  void fit();

  static constexpr std::size_t kMostSamples = 64;
  /// Quartz clocks differ by less, even before anything corrects them.
  static constexpr double kMostDrift = 500e-6;
  std::vector<ClockSample> samples_;  ///< growing in time
  bool own_ = false;
  double drift_ = 0;
  double drift_error_ = kMostDrift;  ///< of it
};

}  // namespace lockbench::loadgen::cluster

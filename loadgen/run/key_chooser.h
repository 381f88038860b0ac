#pragma once

#include <optional>

#include "loadgen/run/hot_set.h"
#include "strategies/duration.h"
#include "strategies/random.h"

namespace lockbench::loadgen {

/// Draws the key of a section: uniform, Zipf (key k, from 0, has the exact weight 1/(k+1)^skew), or
/// with a hot set. Takes constant memory and time, however many keys there are. Read-only after
/// construction, so all clients share it.
class KeyChooser {
 public:
  /// Throws std::invalid_argument unless there is a key, skew is finite and at least 0, and the hot
  /// keys are fewer than all keys and without skew.
  KeyChooser(int keys, double skew, std::optional<HotSet> hot = std::nullopt);

  /// The hot keys are the first ones at the load's start; at each move, as many that follow them.
  int pick(Random& random, Duration since_start = {}) const;

 private:
  int pick_zipf(Random& random) const;
  int pick_hot(Random& random, Duration since_start) const;
  double area_up_to(double x) const;
  double end_of_area(double area) const;

  const int keys_;
  const double skew_;
  const std::optional<HotSet> hot_;
  double area_before_first_ = 0, area_to_last_ = 0, always_taken_ = 0;  ///< with skew
};

}  // namespace lockbench::loadgen

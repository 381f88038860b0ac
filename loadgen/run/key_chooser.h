#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/duration.h"
#include "strategies/random.h"

namespace lockbench::loadgen {

/// A few keys that get much of the load. Every so often others take their place.
struct HotSet {
  double share = 0;                     ///< of the sections that want a hot key, 0 to 1
  int keys = 0;                         ///< that are hot at a time
  std::optional<Duration> moves_every;  ///< nothing: they stay hot

  /// Reads "share=50%,keys=2500,move=10s", in any order; the move may be missing.
  static tl::expected<HotSet, std::string> parse(std::string_view text);
  /// In the form that parse() reads.
  std::string to_string() const;

  bool operator==(const HotSet&) const = default;
};

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

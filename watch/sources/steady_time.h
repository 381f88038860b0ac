#pragma once

#include "strategies/duration.h"

namespace lockbench::watch {

/// A time that a store tells again at each look, a little differently, as a look takes a while. It
/// lies between two times.
struct SteadyTime {
  /// By default: never.
  TimePoint earliest = TimePoint::max(), latest = TimePoint::max();
  TimePoint told = TimePoint::max();  ///< in sightings

  static SteadyTime between(TimePoint earliest, TimePoint latest) {
    // The clocks of watcher and store differ by a little more or less each time.
    constexpr Duration kClocksDiffer = std::chrono::milliseconds(20);
    return {.earliest = earliest, .latest = latest + kClocksDiffer, .told = earliest};
  }
  /// Whether the look before may have meant the same time: then nothing has changed.
  bool may_be(const SteadyTime& before) const {
    return earliest <= before.latest && before.earliest <= latest;
  }
};

}  // namespace lockbench::watch

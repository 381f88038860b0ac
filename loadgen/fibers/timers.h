#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "strategies/duration.h"

namespace lockbench::fibers {

/// What has a deadline. The members are for Timers, except that anybody may read `expired`.
struct Timed {
  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

  TimePoint deadline = TimePoint::max();  ///< max: none
  std::size_t place = kNowhere;           ///< in the heap
  TimePoint queued_for{};                 ///< the time there, which need not be read from there
  bool expired = false;                   ///< since it was armed
};

/// Deadlines, earliest first. To arm the same one again for later, or to disarm it, leaves it where
/// it is until then, so that a time-out for each command costs nothing. For one thread.
class Timers {
 public:
  /// Instead of an earlier deadline.
  void arm(Timed& timed, TimePoint deadline);
  static void disarm(Timed& timed) { timed.deadline = TimePoint::max(); }
  /// Before it is destroyed.
  void remove(Timed& timed);

  /// No deadline passes before; max without any.
  TimePoint next() const { return heap_.empty() ? TimePoint::max() : heap_.front().at; }
  /// Calls `on_expiry(timed)` for each whose deadline has passed.
  template <class OnExpiry>
  void expire(TimePoint now, OnExpiry on_expiry) {
    while (next() <= now) {
      Timed& timed = *heap_.front().timed;
      if (timed.deadline > now) {
        put_off(timed);
        continue;
      }
      remove(timed);
      disarm(timed);
      timed.expired = true;
      on_expiry(timed);
    }
  }

 private:
  struct Entry {
    TimePoint at;  ///< the deadline, or an earlier one that does not count any more
    Timed* timed;
  };

  /// The first one's entry now takes the time of its deadline.
  void put_off(Timed& timed);
  void rise(std::size_t place, Entry entry);
  void sink(std::size_t place, Entry entry);
  void put(std::size_t place, Entry entry) {
    heap_[place] = entry;
    entry.timed->place = place;
    entry.timed->queued_for = entry.at;
  }

  std::vector<Entry> heap_;  ///< binary
};

}  // namespace lockbench::fibers

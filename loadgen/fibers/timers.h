#pragma once

#include <boost/intrusive/set.hpp>

#include "strategies/duration.h"

namespace lockbench::fibers {

/// What has a deadline. The members are for Timers, except that anybody may read `expired`.
struct Timed : boost::intrusive::set_base_hook<> {
  TimePoint deadline = TimePoint::max();  ///< max: none
  TimePoint queued_for{};                 ///< its place in the queue: not after the deadline
  bool expired = false;                   ///< since it was armed
};

/// Deadlines, earliest first; equal ones in the order in which they were queued. To arm the same
/// one again for later, or to disarm it, leaves it where it is until then, so that a time-out for
/// each command costs nothing. For one thread.
class Timers {
 public:
  /// Instead of an earlier deadline.
  void arm(Timed& timed, TimePoint deadline) {
    timed.expired = false;
    timed.deadline = deadline;
    if (deadline == TimePoint::max()) return;
    if (timed.is_linked() && timed.queued_for <= deadline) return;
    remove(timed);
    enqueue(timed);
  }
  static void disarm(Timed& timed) { timed.deadline = TimePoint::max(); }
  /// Before it is destroyed.
  void remove(Timed& timed) {
    if (timed.is_linked()) queue_.erase(Queue::s_iterator_to(timed));
  }

  /// No deadline passes before; max without any.
  TimePoint next() const { return queue_.empty() ? TimePoint::max() : queue_.begin()->queued_for; }
  /// Calls `on_expiry(timed)` for each whose deadline has passed.
  template <class OnExpiry>
  void expire(TimePoint now, OnExpiry on_expiry) {
    while (next() <= now) {
      Timed& timed = *queue_.begin();
      remove(timed);
      if (timed.deadline > now) {
        if (timed.deadline != TimePoint::max()) enqueue(timed);
        continue;
      }
      disarm(timed);
      timed.expired = true;
      on_expiry(timed);
    }
  }

 private:
  struct Earlier {
    bool operator()(const Timed& a, const Timed& b) const { return a.queued_for < b.queued_for; }
  };
  using Queue = boost::intrusive::multiset<Timed, boost::intrusive::compare<Earlier>,
                                           boost::intrusive::constant_time_size<false>>;

  void enqueue(Timed& timed) {
    timed.queued_for = timed.deadline;
    queue_.insert(timed);
  }

  Queue queue_;
};

}  // namespace lockbench::fibers

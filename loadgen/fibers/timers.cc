#include "loadgen/fibers/timers.h"

namespace lockbench::fibers {

void Timers::arm(Timed& timed, TimePoint deadline) {
  timed.expired = false;
  timed.deadline = deadline;
  if (deadline == TimePoint::max()) return;
  if (timed.place == Timed::kNowhere) {
    heap_.push_back({deadline, &timed});
    rise(heap_.size() - 1, heap_.back());
  } else if (deadline < timed.queued_for) {
    rise(timed.place, {deadline, &timed});
  }
}

void Timers::remove(Timed& timed) {
  if (timed.place == Timed::kNowhere) return;
  const std::size_t place = timed.place;
  const Entry last = heap_.back();
  heap_.pop_back();
  timed.place = Timed::kNowhere;
  if (last.timed == &timed) return;
  // It comes from another branch, so it may belong higher or lower.
  rise(place, last);
  sink(last.timed->place, last);
}

void Timers::put_off(Timed& timed) {
  if (timed.deadline == TimePoint::max()) return remove(timed);
  sink(timed.place, {timed.deadline, &timed});
}

void Timers::rise(std::size_t place, Entry entry) {
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (heap_[parent].at <= entry.at) break;
    put(place, heap_[parent]);
    place = parent;
  }
  put(place, entry);
}

void Timers::sink(std::size_t place, Entry entry) {
  while (true) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) ++child;
    if (entry.at <= heap_[child].at) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, entry);
}

}  // namespace lockbench::fibers

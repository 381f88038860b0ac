#pragma once

#include <mutex>
#include <vector>

#include "strategies/env.h"

namespace lockbench::loadgen {

/// Lets two clients meet at a lock now and then: while one of them holds it, its rival is called,
/// asks for the lock and waits. The locks take turns, one at a time, so that the others are free
/// for the rest of the load. Thread-safe.
class Meetings {
 public:
  /// `every`: from the beginning of a meeting to that of the next one, at least.
  Meetings(int locks, Duration every) : every_(every), called_(static_cast<std::size_t>(locks)) {}

  /// The lock's rival, which `event` calls; null when it has ended.
  void expect(int lock, Event* event);

  /// Whether the section of this lock that begins now is a meeting; then end() must follow.
  bool begin(int lock, TimePoint now);
  /// The lock is held, until about then.
  void call(int lock, TimePoint until);
  void end();

  /// Until when the lock is held to which its rival was called last.
  TimePoint held_until(int lock) const;

 private:
  struct Called {
    Event* rival = nullptr;
    TimePoint until = TimePoint::min();
  };

  const Duration every_;
  mutable std::mutex mutex_;
  std::vector<Called> called_;
  std::size_t turn_ = 0;
  bool under_way_ = false;
  TimePoint next_ = TimePoint::min();
};

}  // namespace lockbench::loadgen

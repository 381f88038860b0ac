#pragma once

#include <list>
#include <mutex>

#include "strategies/env.h"

namespace lockbench {

/// A few things of a kind: a caller that wants one waits for it, first come, first served.
/// Thread-safe.
class FairQueue {
 public:
  explicit FairQueue(int free) : free_(free) {}

  /// Takes one, if the result is `signalled`. Otherwise there was none by the deadline, or before a
  /// stop. `event` is the caller's.
  WaitResult take(Env& env, Event& event, TimePoint deadline, const std::stop_token& stop) {
    Waiter waiter{event};
    {
      const std::scoped_lock lock(mutex_);
      if (free_ > 0) {
        --free_;
        return WaitResult::signalled;
      }
      waiters_.push_back(&waiter);
    }
    const WaitResult waited =
        deadline > env.now() ? env.wait(&event, deadline, stop) : WaitResult::timed_out;
    if (waited == WaitResult::signalled) return waited;
    {
      const std::scoped_lock lock(mutex_);
      if (!waiter.served) {
        waiters_.remove(&waiter);
        return waited;
      }
    }
    // Served between the end of the wait and leaving: consumes the signal.
    env.wait(&event, TimePoint::max(), {});
    return WaitResult::signalled;
  }

  void give_back() {
    const std::scoped_lock lock(mutex_);
    if (waiters_.empty()) {
      ++free_;
      return;
    }
    Waiter& next = *waiters_.front();
    waiters_.pop_front();
    next.served = true;
    next.event.set();
  }

 private:
  struct Waiter {
    Event& event;
    bool served = false;
  };

  std::mutex mutex_;
  int free_;
  std::list<Waiter*> waiters_;
};

}  // namespace lockbench

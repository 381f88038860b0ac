#pragma once

#include <list>
#include <mutex>

#include "strategies/env.h"

namespace lockbench::loadgen {

/// The connection pool of an application: who wants a connection waits for it, first come, first
/// served. Only the waiting is simulated; clients of lockbench have connections of their own.
/// Thread-safe.
class ConnectionPool {
 public:
  explicit ConnectionPool(int size) : free_(size) {}

  /// Takes one. False if there is none by the deadline, or before a stop. `event` is the caller's.
  bool take(Env& env, Event& event, TimePoint deadline, const std::stop_token& stop) {
    Waiter waiter{event};
    {
      const std::scoped_lock lock(mutex_);
      if (free_ > 0) {
        --free_;
        return true;
      }
      waiters_.push_back(&waiter);
    }
    if (env.wait(&event, deadline, stop) == WaitResult::signalled) return true;
    {
      const std::scoped_lock lock(mutex_);
      if (!waiter.served) {
        waiters_.remove(&waiter);
        return false;
      }
    }
    // Served between the end of the wait and leaving: consumes the signal.
    env.wait(&event, TimePoint::max(), {});
    return true;
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

}  // namespace lockbench::loadgen

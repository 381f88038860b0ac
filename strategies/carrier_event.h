#pragma once

#include <atomic>

#include "strategies/env.h"

namespace lockbench {

/// Whoever waits for an event: a thread or a fiber.
class Waiter {
 public:
  /// Called by any thread, once for each set() that found it waiting; it must exist until then.
  virtual void wake() noexcept = 0;

 protected:
  ~Waiter() = default;
};

/// The event of all carriers, so that it can be made on one and waited for on another: one word,
/// which is null, the mark, or who waits. All but set() is for the one who waits.
class CarrierEvent final : public Event {
 public:
  void set() noexcept override {
    Waiter* const before = state_.exchange(&mark, std::memory_order_acq_rel);
    // The event may be gone from here on, but the waiter stays until it has been woken.
    if (before != nullptr) before->wake();
  }

  /// Whether it was set; resets it.
  bool take() noexcept {
    // An exchange and not a store: what came with a second set() meanwhile must be seen too.
    return state_.load(std::memory_order_relaxed) == &mark &&
           state_.exchange(nullptr, std::memory_order_acq_rel) == &mark;
  }
  /// From now on a set() wakes this waiter. False if it is set already.
  bool await(Waiter& waiter) noexcept {
    Waiter* unset = nullptr;
    return state_.compare_exchange_strong(unset, &waiter, std::memory_order_acq_rel,
                                          std::memory_order_relaxed);
  }
  /// After await(). False if it was set meanwhile: then the call of wake() has come or will come.
  bool leave(Waiter& waiter) noexcept {
    Waiter* waiting = &waiter;
    return state_.compare_exchange_strong(waiting, nullptr, std::memory_order_acq_rel,
                                          std::memory_order_relaxed);
  }

 private:
  struct Mark final : Waiter {
    void wake() noexcept override {}
  };
  inline static constinit Mark mark;

  std::atomic<Waiter*> state_{nullptr};
};

}  // namespace lockbench

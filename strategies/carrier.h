#pragma once

#include <poll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "strategies/env.h"

namespace lockbench {

/// A body that runs beside its starter. The destructor asks it to stop and waits for its end; any
/// thread may call it.
class Task {
 public:
  virtual ~Task() = default;
};

/// Runs its caller on a thread of its own, which blocks while the caller waits, or as a fiber on a
/// shared thread, where only the caller is parked. Clients, services and transports wait only here,
/// so the same blocking code runs on both.
class Carrier {
 public:
  using Body = std::function<void(const std::stop_token& stop)>;
  /// Called with one line, on the body's carrier, if the body threw. Must not throw.
  using OnFailure = std::function<void(const std::string& why)>;

  virtual ~Carrier() = default;

  /// The caller's carrier; by default its thread. A caller never moves to another carrier.
  static Carrier& current() noexcept;

  /// True if others run on the same thread, so that blocking it stops them too: sockets must not
  /// block, and no mutex may be held over a wait.
  virtual bool shared() const noexcept = 0;

  /// The clock of its waits. All code between a client and its store reads the time here, so that a
  /// whole run can be played on virtual time.
  virtual TimePoint now() const noexcept { return BootClock::now(); }
  virtual WallTime wall_now() const noexcept { return std::chrono::system_clock::now(); }

  /// Any thread may set it. One caller at a time may wait for it, on any carrier.
  virtual std::unique_ptr<Event> make_event() = 0;
  /// As Env::wait.
  virtual WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) = 0;

  /// As poll(2): waits until one of these is ready, at most `longest` (zero: only looks), or until
  /// a stop. May report a kept descriptor that is no longer ready, so the caller must try, and wait
  /// again.
  virtual void poll(std::span<pollfd> descriptors, Duration longest,
                    const std::stop_token& stop) = 0;
  /// Registers the descriptor with the kernel once instead of for each wait. It must be used
  /// without blocking (MSG_DONTWAIT will do), and forgotten before it is closed. Does nothing
  /// unless shared().
  virtual void keep(int descriptor) = 0;
  /// Thread-safe; keep() is for the carrier's own thread.
  virtual void forget(int descriptor) noexcept = 0;

  /// Lets others that are ready run first. Does nothing unless shared().
  virtual void yield() = 0;

  /// Runs `body` beside the caller, on a thread of its own or as a fiber on the caller's thread.
  /// The error says why that is not possible.
  virtual tl::expected<std::unique_ptr<Task>, std::string> start(Body body,
                                                                 OnFailure on_failure) = 0;

 protected:
  /// Sets the result of current() on this thread; null: the thread's own carrier. Set by a
  /// scheduler while it runs one of its fibers.
  static void set_current(Carrier* carrier) noexcept;
};

/// Waits for an event: a thread or a fiber.
class Waiter {
 public:
  /// Called by any thread, once for each set() that found it waiting; it must exist until then.
  virtual void wake() noexcept = 0;

 protected:
  ~Waiter() = default;
};

/// The event of all carriers, so that it can be made on one and waited for on another. One word:
/// null, the mark, or the waiter. Only the waiter calls anything but set().
class CarrierEvent final : public Event {
 public:
  void set() noexcept override {
    Waiter* const before = state_.exchange(&mark, std::memory_order_acq_rel);
    // The event may be gone from here on, but the waiter stays until it has been woken.
    if (before != nullptr) before->wake();
  }

  /// Whether it was set; resets it.
  bool take() noexcept {
    // An exchange, not a store: the writes before a second set() must be visible too.
    return state_.load(std::memory_order_relaxed) == &mark &&
           state_.exchange(nullptr, std::memory_order_acq_rel) == &mark;
  }
  /// From now on a set() wakes this waiter. False if it is set already.
  bool await(Waiter& waiter) noexcept {
    Waiter* unset = nullptr;
    return state_.compare_exchange_strong(unset, &waiter, std::memory_order_acq_rel,
                                          std::memory_order_relaxed);
  }
  /// After await(). False if it was set meanwhile; wake() then has been or will be called.
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

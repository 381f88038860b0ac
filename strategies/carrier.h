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

/// A body that runs beside its starter. Asks it to stop and waits for its end when destroyed, which
/// any thread may do.
class Task {
 public:
  virtual ~Task() = default;
};

/// What the caller runs on: a thread of its own, which blocks wherever the caller waits, or a
/// thread that it shares with others (a fiber), where only the caller is parked. Clients, services
/// and transports wait here and nowhere else, so the same blocking code runs on both.
class Carrier {
 public:
  using Body = std::function<void(const std::stop_token& stop)>;
  /// Called with one line where the body ran, if it threw. Must not throw.
  using OnFailure = std::function<void(const std::string& why)>;

  virtual ~Carrier() = default;

  /// The caller's; by default its thread. Whoever runs on a carrier never moves to another.
  static Carrier& current() noexcept;

  /// Whether others run on the same thread: what blocks it stops them too. Sockets must not block
  /// then, and no mutex may be held over a wait.
  virtual bool shared() const noexcept = 0;

  /// The time by which its waits end. All that measures or judges time on the way from a client to
  /// its store reads it here, so that a whole run can be played on virtual time.
  virtual TimePoint now() const noexcept { return BootClock::now(); }
  virtual WallTime wall_now() const noexcept { return std::chrono::system_clock::now(); }

  /// Set by any thread, and waited for on any carrier, by one at a time.
  virtual std::unique_ptr<Event> make_event() = 0;
  /// As Env::wait.
  virtual WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) = 0;

  /// As poll(2): until one of these is ready, for at most `longest` (zero: only looks), or a stop.
  /// A descriptor that was kept may be reported although it is not ready any more, so the caller
  /// must try and wait again.
  virtual void poll(std::span<pollfd> descriptors, Duration longest,
                    const std::stop_token& stop) = 0;
  /// From now on this descriptor is registered with the kernel once instead of for each wait. It
  /// must be used without blocking (MSG_DONTWAIT will do), and forgotten before it is closed. Does
  /// nothing on a thread of its own.
  virtual void keep(int descriptor) = 0;
  /// Thread-safe; keep() is for the carrier's own thread.
  virtual void forget(int descriptor) noexcept = 0;

  /// Lets others that are ready run first. Does nothing on a thread of its own.
  virtual void yield() = 0;

  /// Runs `body` beside the caller, on a thread of its own or as a fiber on the caller's thread.
  /// The error says why that is not possible.
  virtual tl::expected<std::unique_ptr<Task>, std::string> start(Body body,
                                                                 OnFailure on_failure) = 0;

 protected:
  /// What current() returns on this thread; null: its thread. Set by a scheduler while it runs one
  /// of its fibers.
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

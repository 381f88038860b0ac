#pragma once

#include <cxxabi.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <stop_token>
#include <utility>

#include "loadgen/fibers/context.h"
#include "loadgen/fibers/stacks.h"
#include "loadgen/fibers/timers.h"
#include "strategies/carrier.h"
#include "strategies/carrier_event.h"

namespace lockbench::fibers {

class Scheduler;
struct Fiber;

/// One reason for a fiber to go on, on its way from any thread to the fiber's own.
struct Wake {
  Fiber& fiber;
  Wake* next = nullptr;
  bool delivered = false;
};

/// The exceptions that a fiber handles and those under way, which the C++ runtime keeps by thread.
/// The layout is the ABI's (Itanium C++ ABI, exception handling, 2.2.2).
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;

  void load() const noexcept { std::memcpy(abi::__cxa_get_globals(), this, sizeof *this); }
  void save() noexcept { std::memcpy(this, abi::__cxa_get_globals(), sizeof *this); }
};

/// Of one scheduler, whose thread alone uses it, but for wake() and OnStop.
struct Fiber final : Waiter, Timed {
  struct OnStop {
    Fiber& fiber;
    void operator()() const noexcept;
  };

  Fiber(Scheduler& its_scheduler, Stack its_stack,
        void (*entry)(boost::context::detail::transfer_t))
      : scheduler(its_scheduler), stack(its_stack), context(its_stack, entry) {}

  void wake() noexcept override;

  Scheduler& scheduler;
  const Stack stack;
  Context context;
  ExceptionState exceptions;
  Fiber* next_ready = nullptr;
  bool ready = false;  ///< in the list of those
  bool over = false;

  Wake event_wake{*this};  ///< its start comes as this, too
  Wake stop_wake{*this};
  std::atomic<bool> stop_posted{false};
  /// The stop of the latest waits, which mostly have the same one.
  std::stop_token heeded;
  std::optional<std::stop_callback<OnStop>> on_stop;

  Carrier::Body body;
  Carrier::OnFailure on_failure;
  std::stop_token stop;
  Event* ended = nullptr;  ///< its Task waits for this
};

}  // namespace lockbench::fibers

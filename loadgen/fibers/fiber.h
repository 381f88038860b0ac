#pragma once

#include <cxxabi.h>

#include <array>
#include <atomic>
#include <cstdint>
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

/// Of one scheduler, whose thread alone uses it, but for wake() and OnStop. Among thousands of
/// fibers its memory is in no cache when it goes on, so what each turn uses comes first.
struct alignas(kCacheLine) Fiber final : Waiter, Timed {
  struct StopWake;
  struct OnStop {
    StopWake& stop;
    void operator()() const noexcept;
  };
  /// How a stop reaches it.
  struct StopWake {
    explicit StopWake(Fiber& fiber) : wake{fiber} {}

    Wake wake;
    std::atomic<bool> posted{false};
    std::optional<std::stop_callback<OnStop>> callback;
  };

  Fiber(Scheduler& its_scheduler, Stack its_stack,
        void (*entry)(boost::context::detail::transfer_t))
      : context(its_stack, entry), scheduler(its_scheduler), stack(its_stack) {}

  void wake() noexcept override;
  /// For a turn of it soon.
  void prefetch_turn() const noexcept { prefetch(this, kEachTurn); }

  // With the base classes, what each turn uses.
  static constexpr std::size_t kEachTurn = 2 * kCacheLine;
  Context context;
  Fiber* next_ready = nullptr;
  bool ready = false;  ///< in the list of those
  bool over = false;
  std::uint8_t latest_watched = 0;
  ExceptionState exceptions;
  Wake event_wake{*this};  ///< its start comes as this, too
  /// The stops of the latest waits: commands mostly have one, pauses between them another one.
  std::array<std::stop_token, 2> watched_stops;
  Scheduler& scheduler;

  std::array<StopWake, 2> stop_wakes{StopWake(*this), StopWake(*this)};  ///< of those
  const Stack stack;
  Carrier::Body body;
  Carrier::OnFailure on_failure;
  std::stop_token stop;
  Event* ended = nullptr;  ///< its Task waits for this
};

}  // namespace lockbench::fibers

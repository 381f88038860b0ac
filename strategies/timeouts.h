#pragma once

#include <chrono>

#include "strategies/duration.h"

namespace lockbench {

/// How long a call waits for its store.
struct Timeouts {
  static constexpr Duration kAfterStop = std::chrono::milliseconds(100);

  template <class Rep, class Period>
  // NOLINTNEXTLINE(google-explicit-constructor): most callers have only the first
  Timeouts(std::chrono::duration<Rep, Period> for_answer, Duration once_stopped = kAfterStop)
      : answer(for_answer), after_stop(once_stopped) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator Duration() const { return answer; }

  Duration answer;  ///< for one answer, and to connect
  /// For all that a call does once it is stopped: an answer under way may come, and what a lost
  /// answer may have done is undone, perhaps on a new connection. Each step has a part of it.
  Duration after_stop;
};

}  // namespace lockbench

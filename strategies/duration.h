#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench {

using Duration = std::chrono::nanoseconds;

/// Monotonic time, for measuring and waiting, and for judging whether a lease is valid. Unlike
/// std::chrono::steady_clock it goes on while the machine is suspended (CLOCK_BOOTTIME), like the
/// clock of a store on another machine. A suspension may prolong a wait by its own length.
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock, Duration>;
  static constexpr bool is_steady = true;  // NOLINT(readability-identifier-naming): the standard's

  static time_point now() noexcept;
  /// Total time for which the machine has been suspended since its start.
  static Duration suspended() noexcept;
};
using TimePoint = BootClock::time_point;
/// Time of day, for time stamps and for strategies that (wrongly) rely on it.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

/// A century. A longer duration from a user or a store is an error, so that the sum of two still
/// fits.
inline constexpr Duration kLongestDuration = std::chrono::hours(24 * 36'525);

/// "250us", "10ms", "2s", "1.5h": a number of at least 0 with one of ns, us, ms, s, m, h; a bare
/// "0" needs no unit. The error says what is allowed.
tl::expected<Duration, std::string> parse_duration(std::string_view text);

/// The shortest exact form that parse_duration reads back: "10ms", "1500us".
std::string format_duration(Duration duration);

/// For output.
inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// For the kernel.
timespec to_timespec(Duration duration);

/// For messages and for stores that count in whole units. Rounds up: a TTL must not be shorter than
/// requested.
constexpr std::int64_t ceil_milliseconds(Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration).count();
}
constexpr std::int64_t ceil_seconds(Duration duration) {
  return std::chrono::ceil<std::chrono::seconds>(duration).count();
}

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
  /// For all that a call does once it is stopped: wait for an answer under way, and undo a request
  /// whose answer was lost, perhaps on a new connection. Each step gets a part of it.
  Duration after_stop;
};

}  // namespace lockbench

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "loadgen/record/cache_line.h"
#include "strategies/duration.h"

namespace lockbench::loadgen {

/// Measures handoffs per key: from the start of a client's successful release to the next grant to
/// a client that was waiting when that release began. The grant may be seen before the releasing
/// client knows that it succeeded. The duration is returned to the client that completes the pair,
/// so each handoff is reported once. A handoff that is undecided when the next release of its key
/// begins is not counted. Thread-safe and lock-free; keys from 0.
class HandoffTracker {
 public:
  explicit HandoffTracker(int keys);

  /// Around every acquisition: begin before its start is timed, end whatever its outcome.
  void begin_wait(int key) noexcept;
  void end_wait(int key) noexcept;
  int waiters(int key) const noexcept;

  /// Call before the release is sent.
  void release_started(int key, TimePoint started) noexcept;
  /// Call when its answer is known, with the same `started`, for every release that began.
  std::optional<Duration> release_finished(int key, TimePoint started, bool success) noexcept;

  /// Call right after a grant.
  std::optional<Duration> granted(int key, TimePoint acquire_started,
                                  TimePoint granted_at) noexcept;

 private:
  struct alignas(kCacheLine) Slot {
    /// The latest release: its start, and its stage in the two lowest bits.
    std::atomic<std::uint64_t> release{0};
    std::atomic<TimePoint> granted_at{TimePoint{}};  ///< valid once the release says `granted`
    std::atomic<int> waiters{0};
  };

  Slot& slot(int key) noexcept { return slots_[static_cast<std::size_t>(key)]; }

  std::vector<Slot> slots_;
};

}  // namespace lockbench::loadgen

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "loadgen/record/cache_line.h"
#include "strategies/duration.h"

namespace lockbench::loadgen {

/// Measures the handoff of each key: from the start of a client's successful release to the next
/// grant to a client that was waiting when that release began. The grant may be seen before the
/// releasing client knows that it succeeded; whoever comes second is told the duration, so each
/// handoff is told once. One that is still undecided when the next release of its key begins is not
/// counted. Thread-safe and lock-free; keys from 0.
class HandoffTracker {
 public:
  explicit HandoffTracker(int keys);

  /// Round every acquisition: begin before its start is timed, end whatever became of it.
  void begin_wait(int key) noexcept;
  void end_wait(int key) noexcept;
  int waiters(int key) const noexcept;

  /// Before the release is sent.
  void release_started(int key, TimePoint started) noexcept;
  /// When its answer is known, with the same `started`. To be called for every release that began.
  std::optional<Duration> release_finished(int key, TimePoint started, bool success) noexcept;

  /// Right after a grant.
  std::optional<Duration> granted(int key, TimePoint acquire_started,
                                  TimePoint granted_at) noexcept;

 private:
  struct alignas(kCacheLine) Slot {
    /// The latest release: when it began, and in the two lowest bits how far it is.
    std::atomic<std::uint64_t> release{0};
    std::atomic<TimePoint> granted_at{TimePoint{}};  ///< valid once the release says `granted`
    std::atomic<int> waiters{0};
  };

  Slot& slot(int key) noexcept { return slots_[static_cast<std::size_t>(key)]; }

  std::vector<Slot> slots_;
};

}  // namespace lockbench::loadgen

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "loadgen/record/cache_line.h"
#include "strategies/duration.h"
#include "strategies/lease.h"

namespace lockbench::loadgen {

/// The highest fencing number whose acquisition had completed when another one began.
struct AcquireMark {
  /// Twice that number, plus one if it was shared, plus two if it was exclusive; 0: there is none.
  std::uint64_t floor = 0;
};

/// Who went in: to be handed back on leaving.
struct Entry {
  Mode mode = Mode::exclusive;
};

struct AuditTotals {
  std::uint64_t overlaps = 0;  ///< entries that met a conflicting client inside
  Duration overlap_time{};     ///< summed over the keys; includes what is still going on
  std::uint64_t fence_regressions = 0;
  std::uint64_t longest_streak = 0;  ///< grants of one key in a row that went to one client
};

/// Adds up intervals that do not overlap each other, though a thread may report the end of one
/// before another thread reports its beginning. Thread-safe and lock-free.
class IntervalSum {
 public:
  /// Times since an origin of the caller's, within 400 days of it.
  void begin(Duration at) noexcept { add(kOne - static_cast<std::uint64_t>(at.count())); }
  void end(Duration at) noexcept { add(static_cast<std::uint64_t>(at.count()) - kOne); }

  /// Includes an interval that is open at `now`.
  Duration total(Duration now) const noexcept;

 private:
  static constexpr int kTimeBits = 56;
  static constexpr std::uint64_t kOne = std::uint64_t{1} << kTimeBits;

  void add(std::uint64_t edge) noexcept { value_.fetch_add(edge, std::memory_order_relaxed); }

  /// Open intervals in the top byte; below it, as a signed number, the sum of ends less the sum of
  /// beginnings. One word, so that a reader always sees both as of the same moment.
  std::atomic<std::uint64_t> value_{0};
};

/// The oracles that do not trust the lock: who is inside each key's section, and in which order
/// fencing numbers came. One per run. Thread-safe and lock-free; keys from 0. It knows nothing but
/// the calls' arguments, so entries and exits of several processes can be fed to it, merged by
/// their times.
class Audit {
 public:
  /// `origin` must not be later than the times of the calls, nor earlier by more than 400 days.
  explicit Audit(int keys, TimePoint origin = std::chrono::steady_clock::now());

  /// Before the lock is asked for.
  AcquireMark begin_acquire(int key) const noexcept;

  /// Right after the grant. Counts an overlap if the client meets one inside that excludes it, and
  /// a regression if its fencing number does not exceed the mark's; two shared ones may be equal.
  /// Numbers below 2^63.
  Entry enter(int key, int client, Mode mode, std::optional<std::uint64_t> fencing,
              AcquireMark mark, TimePoint now) noexcept;

  /// Right before the release.
  void leave(int key, Entry entry, TimePoint now) noexcept;

  /// Forgets the streaks so far: they are figures of the measured part, not evidence.
  void restart_streaks() noexcept;

  /// So far, at no cost.
  std::uint64_t overlaps() const noexcept { return overlaps_.load(std::memory_order_relaxed); }
  std::uint64_t fence_regressions() const noexcept {
    return fence_regressions_.load(std::memory_order_relaxed);
  }

  /// At any time. Costs a walk over the keys once there has been an overlap.
  AuditTotals totals(TimePoint now = std::chrono::steady_clock::now()) const noexcept;

 private:
  struct alignas(kCacheLine) Slot {
    std::atomic<std::uint64_t> inside{0};  ///< exclusive clients above, shared ones below 32 bits
    std::atomic<std::uint64_t> completed{0};  ///< highest fencing number, as in AcquireMark
    std::atomic<std::uint64_t> streak{0};     ///< client above, its grants in a row below 32 bits
    IntervalSum conflict;
  };

  void check_fencing(Slot& slot, Mode mode, std::uint64_t fencing, AcquireMark mark) noexcept;
  void count_streak(Slot& slot, int client) noexcept;

  const TimePoint origin_;
  std::vector<Slot> slots_;
  alignas(kCacheLine) std::atomic<std::uint64_t> overlaps_{0};
  std::atomic<std::uint64_t> fence_regressions_{0};
  std::atomic<std::uint64_t> longest_streak_{0};
};

}  // namespace lockbench::loadgen

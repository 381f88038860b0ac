#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "loadgen/record/memory.h"
#include "strategies/carrier.h"
#include "strategies/lease.h"

namespace lockbench::loadgen {

/// The highest fencing number whose acquisition had completed when another one began.
struct AcquireMark {
  /// Twice that number, plus 1 if it was shared or 2 if it was exclusive; 0: there is none.
  std::uint64_t floor = 0;

  /// The mark of acquisitions that begin after this grant.
  static constexpr AcquireMark after(Mode mode, std::uint64_t fencing) {
    return {2 * fencing + (mode == Mode::shared ? 1 : 2)};
  }
  /// Whether the number is too low. Only clients that share the lock may have equal ones.
  constexpr bool is_above(Mode mode, std::uint64_t fencing) const {
    return 2 * fencing + (mode == Mode::shared ? 1 : 0) < floor;
  }
};

struct AuditTotals {
  std::uint64_t overlaps = 0;  ///< entries while a conflicting client was inside
  Duration overlap_time{};     ///< summed over the keys; includes overlaps that still last
  std::uint64_t fence_regressions = 0;
  /// Those below the previous grant. After a store has lost its numbers, each grant is a regression
  /// until they are as high again, but only the first is a reset.
  std::uint64_t fence_resets = 0;
  std::uint64_t longest_streak = 0;  ///< grants of one key in a row that went to one client
};

/// Sums intervals that do not overlap. One thread may report an interval's end before another
/// thread reports its beginning. Thread-safe and lock-free.
class IntervalSum {
 public:
  /// Times since an origin that the caller chooses, within 400 days.
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

/// Checks that do not trust the lock: which clients are inside each key's section, and whether
/// fencing numbers grow. One per run. Thread-safe, and lock-free as PerKey is; keys from 0.
class Audit {
 public:
  /// `origin` must be before the times of the calls, by at most 400 days. `permits`: how many
  /// exclusive clients do not conflict; more than one for a semaphore.
  explicit Audit(int keys, TimePoint origin = Carrier::current().now(), int permits = 1);

  /// Call before requesting the lock.
  AcquireMark begin_acquire(int key) const noexcept;

  /// Call right after the grant. Counts an overlap if a conflicting client is inside, and a
  /// regression if the fencing number is not above the mark's (two shared ones may be equal).
  /// Numbers are below 2^63.
  void enter(int key, int client, Mode mode, std::optional<std::uint64_t> fencing, AcquireMark mark,
             TimePoint now) noexcept;

  /// Call right before the release, with the same mode.
  void leave(int key, Mode mode, TimePoint now) noexcept;

  /// Drops the streaks of the warm-up: unlike the other findings they are figures, not evidence.
  void restart_streaks() noexcept;

  /// Adds the findings of another process. The longest streak is the longer of the two.
  void add(const AuditTotals& more) noexcept;

  /// The totals so far. Walks over the used keys if there was an overlap.
  AuditTotals totals(TimePoint now = Carrier::current().now()) const noexcept;

 private:
  struct alignas(kCacheLine) Slot {
    std::atomic<std::uint64_t> inside{0};  ///< exclusive clients above, shared ones below 32 bits
    std::atomic<std::uint64_t> completed{0};  ///< highest fencing number, as in AcquireMark
    std::atomic<std::uint64_t> latest{0};     ///< fencing number of the latest grant, likewise
    std::atomic<std::uint64_t> streak{0};     ///< client above, its grants in a row below 32 bits
    IntervalSum conflict;
  };

  /// Whether some of these clients exclude each other.
  bool conflicting(std::uint64_t inside) const noexcept;
  void check_fencing(Slot& slot, Mode mode, std::uint64_t fencing, AcquireMark mark) noexcept;
  void count_streak(Slot& slot, int client) noexcept;

  const TimePoint origin_;
  const std::uint64_t permits_;
  PerKey<Slot> slots_;
  alignas(kCacheLine) std::atomic<std::uint64_t> overlaps_{0};
  std::atomic<std::uint64_t> fence_regressions_{0}, fence_resets_{0};
  std::atomic<std::uint64_t> longest_streak_{0};
  std::atomic<std::int64_t> overlap_ns_{0};  ///< found by other processes
};

}  // namespace lockbench::loadgen

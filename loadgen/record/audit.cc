#include "loadgen/record/audit.h"

#include <algorithm>

namespace lockbench::loadgen {
namespace {

using std::memory_order_relaxed;
constexpr std::uint64_t kExclusive = std::uint64_t{1} << 32;
constexpr std::uint64_t kLowHalf = kExclusive - 1;

std::uint64_t weight(Mode mode) { return mode == Mode::exclusive ? kExclusive : 1; }

}  // namespace

Duration IntervalSum::total(Duration now) const noexcept {
  const std::uint64_t value = value_.load(std::memory_order_relaxed);
  constexpr int kOpenBits = 64 - kTimeBits;
  const std::int64_t time = static_cast<std::int64_t>(value << kOpenBits) >> kOpenBits;
  const std::int64_t open =
      static_cast<std::int64_t>(value - static_cast<std::uint64_t>(time)) >> kTimeBits;
  return std::max(Duration::zero(), Duration(time) + open * now);
}

Audit::Audit(int keys, TimePoint origin, int permits)
    : origin_(origin), permits_(static_cast<std::uint64_t>(permits)), slots_(keys) {}

bool Audit::conflicting(std::uint64_t inside) const noexcept {
  const std::uint64_t exclusive = inside / kExclusive;
  const std::uint64_t shared = inside & kLowHalf;
  return exclusive > permits_ || (exclusive > 0 && shared > 0);
}

AcquireMark Audit::begin_acquire(int key) const noexcept {
  const Slot* const slot = slots_.find(key);
  return {slot == nullptr ? 0 : slot->completed.load(memory_order_relaxed)};
}

void Audit::enter(int key, int client, Mode mode, std::optional<std::uint64_t> fencing,
                  AcquireMark mark, TimePoint now) noexcept {
  Slot& slot = slots_[key];
  const std::uint64_t before = slot.inside.fetch_add(weight(mode), std::memory_order_acq_rel);
  // An entering client is part of every conflict at that time.
  if (conflicting(before + weight(mode))) {
    overlaps_.fetch_add(1, memory_order_relaxed);
    if (!conflicting(before)) slot.conflict.begin(now - origin_);
  }
  if (fencing) check_fencing(slot, mode, *fencing, mark);
  count_streak(slot, client);
}

void Audit::leave(int key, Mode mode, TimePoint now) noexcept {
  Slot& slot = slots_[key];
  const std::uint64_t before = slot.inside.fetch_sub(weight(mode), std::memory_order_acq_rel);
  if (conflicting(before) && !conflicting(before - weight(mode))) {
    slot.conflict.end(now - origin_);
  }
}

AuditTotals Audit::totals(TimePoint now) const noexcept {
  AuditTotals totals;
  totals.overlaps = overlaps_.load(memory_order_relaxed);
  totals.fence_regressions = fence_regressions_.load(memory_order_relaxed);
  totals.fence_resets = fence_resets_.load(memory_order_relaxed);
  totals.longest_streak = longest_streak_.load(memory_order_relaxed);
  totals.overlap_time = Duration(overlap_ns_.load(memory_order_relaxed));
  if (totals.overlaps == 0) return totals;
  slots_.for_each(
      [&](int, const Slot& slot) { totals.overlap_time += slot.conflict.total(now - origin_); });
  return totals;
}

void Audit::add(const AuditTotals& more) noexcept {
  overlaps_.fetch_add(more.overlaps, memory_order_relaxed);
  fence_regressions_.fetch_add(more.fence_regressions, memory_order_relaxed);
  fence_resets_.fetch_add(more.fence_resets, memory_order_relaxed);
  raise_to(longest_streak_, more.longest_streak);
  overlap_ns_.fetch_add(more.overlap_time.count(), memory_order_relaxed);
}

void Audit::check_fencing(Slot& slot, Mode mode, std::uint64_t fencing, AcquireMark mark) noexcept {
  const std::uint64_t completed = AcquireMark::after(mode, fencing).floor;
  const AcquireMark before{slot.latest.exchange(completed, memory_order_relaxed)};
  if (mark.is_above(mode, fencing)) {
    fence_regressions_.fetch_add(1, memory_order_relaxed);
    if (before.is_above(mode, fencing)) fence_resets_.fetch_add(1, memory_order_relaxed);
  }
  raise_to(slot.completed, completed);
}

void Audit::restart_streaks() noexcept {
  slots_.for_each([](int, Slot& slot) { slot.streak.store(0, memory_order_relaxed); });
  longest_streak_.store(0, memory_order_relaxed);
}

void Audit::count_streak(Slot& slot, int client) noexcept {
  // Not atomic as a whole: only overlapping clients can disturb each other's count.
  const std::uint64_t owner = (static_cast<std::uint64_t>(client) & kLowHalf) * kExclusive;
  const std::uint64_t last = slot.streak.load(memory_order_relaxed);
  const bool again = (last & kLowHalf) > 0 && (last & ~kLowHalf) == owner;
  const std::uint64_t length = again ? (last & kLowHalf) + 1 : 1;
  slot.streak.store(owner + length, memory_order_relaxed);
  raise_to(longest_streak_, length);
}

}  // namespace lockbench::loadgen

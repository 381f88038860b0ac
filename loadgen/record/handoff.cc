#include "loadgen/record/handoff.h"

namespace lockbench::loadgen {
namespace {

using std::memory_order_relaxed;

/// The stage of a release. Its start identifies it: no two of one key begin in the same nanosecond.
enum Stage : std::uint64_t {
  kPending = 1,    ///< the result is not known yet
  kConfirmed = 2,  ///< it succeeded; there was no grant yet
  kGranted = 3,    ///< there was a grant; the result is not known yet
};
constexpr std::uint64_t kNone = 0;
constexpr std::uint64_t kStageMask = 3;

std::uint64_t pack(TimePoint started, Stage stage) {
  return (static_cast<std::uint64_t>(started.time_since_epoch().count()) << 2) | stage;
}

TimePoint start_of(std::uint64_t release) {
  return TimePoint(Duration(static_cast<std::int64_t>(release) >> 2));
}

bool replace(std::atomic<std::uint64_t>& release, std::uint64_t& expected, std::uint64_t next) {
  return release.compare_exchange_strong(expected, next, std::memory_order_acq_rel,
                                         std::memory_order_acquire);
}

}  // namespace

HandoffTracker::HandoffTracker(int keys) : slots_(static_cast<std::size_t>(keys)) {}

void HandoffTracker::begin_wait(int key) noexcept {
  slot(key).waiters.fetch_add(1, memory_order_relaxed);
}

void HandoffTracker::end_wait(int key) noexcept {
  slot(key).waiters.fetch_sub(1, memory_order_relaxed);
}

int HandoffTracker::waiters(int key) const noexcept {
  return slots_[static_cast<std::size_t>(key)].waiters.load(memory_order_relaxed);
}

void HandoffTracker::release_started(int key, TimePoint started) noexcept {
  const bool awaited = waiters(key) > 0;
  slot(key).release.store(awaited ? pack(started, kPending) : kNone, std::memory_order_release);
}

std::optional<Duration> HandoffTracker::release_finished(int key, TimePoint started,
                                                         bool success) noexcept {
  Slot& mine = slot(key);
  std::uint64_t release = pack(started, kPending);
  if (replace(mine.release, release, success ? pack(started, kConfirmed) : kNone)) return {};
  if (release != pack(started, kGranted))
    return {};  // no client was waiting, or another release began
  // Read before the slot is freed: afterwards the next grant may write it.
  const TimePoint granted_at = mine.granted_at.load(memory_order_relaxed);
  if (!replace(mine.release, release, kNone) || !success) return {};
  return granted_at - started;
}

std::optional<Duration> HandoffTracker::granted(int key, TimePoint acquire_started,
                                                TimePoint granted_at) noexcept {
  Slot& mine = slot(key);
  std::uint64_t release = mine.release.load(std::memory_order_acquire);
  // A second attempt if the release was confirmed meanwhile; nothing else can happen to it.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::uint64_t stage = release & kStageMask;
    const TimePoint started = start_of(release);
    // A grant from before the release was not caused by it.
    if (release == kNone || stage == kGranted || granted_at < started) return {};
    const bool was_waiting = acquire_started <= started;
    if (was_waiting && stage == kPending) {
      mine.granted_at.store(granted_at, memory_order_relaxed);
      if (replace(mine.release, release, pack(started, kGranted))) return {};
    } else if (replace(mine.release, release, kNone)) {
      return was_waiting ? std::optional(granted_at - started) : std::nullopt;
    }
  }
  return {};
}

}  // namespace lockbench::loadgen

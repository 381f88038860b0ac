#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "loadgen/record/histogram.h"
#include "watch/lock_record.h"
#include "watch/picture.h"

namespace lockbench::watch {

/// What is kept of a few locks only.
struct LockDetails {
  struct Event {
    TimePoint at{};
    Moment::Kind kind = Moment::Kind::granted;
    std::uint64_t owner = 0, waiting = 0;
  };

  std::size_t place = 0;  ///< of the lock in the table
  loadgen::HistogramSnapshot hold, wait;
  std::optional<Duration> smallest_margin;
  std::deque<Event> history;  ///< the latest

  void take(const Happenings& happenings, const LockRecord& record, bool queue_changed);
  std::vector<Moment> moments() const;
};

/// The details of the locks that hurt most, at most so many. For one thread.
class DetailedLocks {
 public:
  explicit DetailedLocks(std::size_t most) : most_(most) {}

  /// Null for a lock without details.
  LockDetails* find(std::size_t place);
  /// Also for a lock without details if there is room, or if it hurts clearly more than another one
  /// that has them. `hurt` tells of any place.
  template <class Hurt>
  LockDetails* find_or_admit(std::size_t place, const Hurt& hurt) {
    if (LockDetails* found = find(place)) return found;
    if (all_.size() < most_) return admit(all_.emplace_back(), place);
    // Looking at all of them each time would cost more than the rest.
    constexpr double kClearly = 1.5;
    hand_ = (hand_ + 1) % all_.size();
    LockDetails& candidate = all_[hand_];
    if (hurt(place) <= kClearly * hurt(candidate.place)) return nullptr;
    return admit(candidate, place);
  }
  void forget(std::size_t place);

 private:
  static LockDetails* admit(LockDetails& details, std::size_t place) {
    details = LockDetails();
    details.place = place;
    return &details;
  }

  const std::size_t most_;
  std::vector<LockDetails> all_;
  std::size_t hand_ = 0;
};

}  // namespace lockbench::watch

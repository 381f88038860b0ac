#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "watch/lock_record.h"
#include "watch/picture.h"

namespace lockbench::watch {

/// The locks that are followed, at most so many: beyond that, some lock that has been free for a
/// while is forgotten for a new one. For one thread.
class LockTable {
 public:
  explicit LockTable(std::uint64_t most) : most_(most) {}

  /// The place of a lock by its hash; nothing if it is not followed.
  std::optional<std::size_t> find(std::uint64_t key) const;
  /// An empty record for it; nothing if all places are taken by locks in use.
  std::optional<std::size_t> add(std::uint64_t key, TimePoint now);
  bool forgot_any() const { return forgot_any_; }

  LockRecord& at(std::size_t place) { return records_[place]; }
  const LockRecord& at(std::size_t place) const { return records_[place]; }
  std::size_t size() const { return records_.size(); }

 private:
  std::optional<std::size_t> forget_one(TimePoint now);

  const std::uint64_t most_;
  std::deque<LockRecord> records_;  ///< grows without moving a million records
  std::unordered_map<std::uint64_t, std::uint32_t> places_;
  std::size_t hand_ = 0;  ///< where the search for a lock to forget goes on
  bool forgot_any_ = false;
};

/// What is kept of a few locks only.
struct LockDetails {
  std::size_t place = 0;  ///< of the lock in the table
  std::deque<Moment> history;  ///< the latest

  void take(const Happenings& happenings, const LockRecord& record, bool queue_changed);
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

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "watch/lock_record.h"
#include "watch/picture.h"
#include "watch/sketches.h"

// What a ledger keeps of locks, of the few that hurt most, and of families. For one thread.
namespace lockbench::watch {

/// The locks that are followed, at most so many: beyond that, some lock that has been free for a
/// while is forgotten for a new one.
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

/// The latest that happened to the locks that hurt most, at most so many of them.
class Histories {
 public:
  using History = std::deque<results::ObservedLock::Moment>;
  explicit Histories(std::size_t most) : most_(most) {}

  /// Null for a lock without a history.
  History* find(std::size_t place);
  /// Also for a lock without one if there is room, or if it hurts clearly more than another one
  /// that has a history. `hurt` tells of any place.
  template <class Hurt>
  History* find_or_admit(std::size_t place, const Hurt& hurt) {
    if (History* found = find(place)) return found;
    if (all_.size() < most_) return &all_.emplace_back(place, History()).second;
    // Looking at all of them each time would cost more than the rest.
    constexpr double kClearly = 1.5;
    hand_ = (hand_ + 1) % all_.size();
    auto& candidate = all_[hand_];
    if (hurt(place) <= kClearly * hurt(candidate.first)) return nullptr;
    candidate = {place, {}};
    return &candidate.second;
  }
  void forget(std::size_t place);

 private:
  const std::size_t most_;
  std::vector<std::pair<std::size_t, History>> all_;
  std::size_t hand_ = 0;
};
/// What followed from a sighting, or that only the queue has changed. Forgets what is older.
void add(Histories::History& history, const Happenings& happenings, const LockRecord& record,
         TimePoint began);

/// All that is kept of a family of locks, however many they are.
class FamilyBook {
 public:
  FamilyBook(std::string store, std::string family, TimePoint began);

  /// What followed from a sighting of one of its locks: that is held and waited for by so many as
  /// the record says now; before, by `held` and `waiting`.
  void take(const Happenings& happenings, const LockRecord& record, std::uint64_t held,
            std::uint64_t waiting);
  /// The store tells who waits, or how many.
  void waits_known();
  /// A lock that was not followed before; `forgets`: it may have been followed earlier.
  void lock_added(std::uint64_t key, bool forgets);

  /// Without what only the locks themselves tell: the oldest, the leaks, the long ones. `missed`:
  /// changes that its sources could not look at.
  FamilyPicture picture(TimePoint now, Accuracy of_source, std::uint64_t missed);
  std::uint64_t changes_per_holding() const { return changes_per_holding_; }
  /// As far as it is known at any time.
  const FamilyPicture& known() const { return known_; }

 private:
  const TimePoint began_;
  FamilyPicture known_;
  PerSecond acquired_{16};
  Lows queue_;
  Distinct owners_, locks_;
  Frequent frequent_;
  bool forgot_ = false, coalesced_ = false;
  std::uint64_t changes_per_holding_ = 0;  ///< fewest seen; 0: none yet
};

/// Counts what happened to a lock; not how many wait.
void add(Counts& counts, const Happenings& happenings);

}  // namespace lockbench::watch

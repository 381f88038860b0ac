#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "watch/lock_record.h"
#include "watch/picture.h"
#include "watch/sketches.h"

namespace lockbench::watch {

/// All that is kept of a family of locks, however many they are.
class FamilyBook {
 public:
  FamilyBook(std::string store, std::string family, TimePoint began)
      : store_(std::move(store)), family_(std::move(family)), began_(began) {}

  /// What followed from a sighting of one of its locks: that is held and waited for by so many as
  /// the record says now; before, by `held` and `waiting`.
  void take(const Happenings& happenings, const LockRecord& record, std::uint64_t held,
            std::uint64_t waiting);
  void waits_known() { figures_.waits_known = true; }
  /// A lock that was not followed before; `forgets`: it may have been followed earlier.
  void lock_added(std::uint64_t key, bool forgets);

  /// Without what only the locks themselves tell: the oldest, the leaks, the long ones. `missed`:
  /// its sources could not look at every change.
  FamilyPicture picture(TimePoint now, Accuracy of_source, bool missed);
  std::uint64_t changes_per_holding() const { return changes_per_holding_; }
  const std::string& store() const { return store_; }
  const std::string& family() const { return family_; }
  const Figures& figures() const { return figures_; }

 private:
  const std::string store_, family_;
  const TimePoint began_;
  Figures figures_;
  PerSecond acquired_{16};
  Lows queue_;
  Distinct owners_, locks_;
  Frequent frequent_;
  std::uint64_t added_ = 0;
  bool forgot_ = false, coalesced_ = false;
  std::uint64_t changes_per_holding_ = 0;  ///< fewest seen; 0: none yet
};

/// Counts what happened to a lock; not how many wait.
void add(Counts& counts, const Happenings& happenings);

}  // namespace lockbench::watch

#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "strategies/duration.h"

namespace lockbench::hazards {

/// What happened in one play: who did or learned what, and when. Not thread-safe.
class Timeline {
 public:
  struct Entry {
    TimePoint at;
    std::string who, what;
  };

  /// Entries may arrive out of order: an answer carries the time at which the client received it.
  void add(TimePoint at, std::string who, std::string what) {
    const auto later =
        std::upper_bound(entries_.begin(), entries_.end(), at,
                         [](TimePoint time, const Entry& entry) { return time < entry.at; });
    entries_.insert(later, {at, std::move(who), std::move(what)});
  }
  void add_now(std::string who, std::string what) {
    add(BootClock::now(), std::move(who), std::move(what));
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace lockbench::hazards

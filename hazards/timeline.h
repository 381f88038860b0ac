#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "strategies/duration.h"

namespace lockbench::hazards {

/// What happened in one play, as it is told afterwards: who did or learned what, and when. For one
/// thread.
class Timeline {
 public:
  struct Entry {
    TimePoint at;
    std::string who, what;
  };

  /// Not necessarily in order: an answer says when it was got, not when it was heard.
  void add(TimePoint at, std::string who, std::string what) {
    const auto later = std::upper_bound(
        entries_.begin(), entries_.end(), at,
        [](TimePoint time, const Entry& entry) { return time < entry.at; });
    entries_.insert(later, {at, std::move(who), std::move(what)});
  }
  void add_now(std::string who, std::string what) {
    add(std::chrono::steady_clock::now(), std::move(who), std::move(what));
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace lockbench::hazards

#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "deployment/failure.h"
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

/// A step of the play itself came late, as on a machine that stalls. The play is then `not-played`:
/// what followed says nothing about the lock.
class Disturbed : public deployment::Failure {
 public:
  using Failure::Failure;
};

/// Throws Disturbed if `step`, which was due at `due`, happened later than that by more than
/// `tolerance`.
void require_in_time(std::string_view step, TimePoint due, TimePoint happened_at,
                     Duration tolerance);

}  // namespace lockbench::hazards

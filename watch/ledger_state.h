#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "watch/family_book.h"
#include "watch/hashing.h"
#include "watch/ledger.h"
#include "watch/lock_details.h"
#include "watch/lock_table.h"
#include "watch/sketches.h"

namespace lockbench::watch {

/// What a ledger knows of a source.
struct Endpoint {
  SourcePicture picture;
  TimePoint sees_since{};
  TimePoint blind_since{};
  std::uint32_t epoch = 0;

  double blind_seconds(TimePoint now) const {
    return picture.blind_seconds + (picture.sees ? 0 : seconds(now - blind_since));
  }
};

/// How much a lock hurts, to order them.
double hurt_of(const LockRecord& record, TimePoint now, bool held_long);

/// What a ledger keeps; only its files include this.
struct Ledger::State {
  State(LedgerOptions given, Families by_name)
      : options(given),
        families(std::move(by_name)),
        salt(given.salt ? Salt{*given.salt, ~*given.salt} : random_salt()),
        locks(std::max<std::uint64_t>(1, given.most_locks)) {}

  // All under the mutex.
  std::mutex mutex;
  const LedgerOptions options;
  const Families families;
  const Salt salt;
  std::vector<std::string> names;  ///< of endpoints
  std::vector<Endpoint> endpoints;
  LockTable locks;
  std::vector<FamilyBook> books;
  DetailedLocks details{64};
  std::set<std::string> proposals;
  Distinct unfollowed, owners;
  std::optional<TimePoint> began;
  TimePoint latest{};
  // For the workload.
  loadgen::HistogramSnapshot ttl;
  PerSecond acquired{3600};
  std::uint64_t held = 0, waiting = 0, most_at_once = 0, shared = 0;
  bool queued = false;

  std::size_t endpoint_of(const std::string& name);
  std::uint32_t book_of(const std::string& store, const std::string& lock, TimePoint at);
  std::optional<std::size_t> place_of(std::size_t endpoint, const Sighting& sighting);
  void take(std::size_t place, Sighting sighting);
  void keep(std::size_t place, const Happenings& happenings, bool queue_changed);
  /// Whether it was held or waited for before an outage, and its source has nothing more to say of
  /// it: it was freed meanwhile.
  bool was_freed_unseen(const LockRecord& record, TimePoint now) const;
  void free_unseen(std::size_t place, TimePoint now);
  /// Since when no source sees; nothing: one does.
  std::optional<TimePoint> blind_since() const;
  /// The book's figures, as well as its sources see.
  FamilyPicture picture_of(FamilyBook& book, TimePoint now) const;
  Duration seen_for(TimePoint now) const;

  void begin(TimePoint at) {
    if (!began) began = at;
    latest = std::max(latest, at);
  }
};

}  // namespace lockbench::watch

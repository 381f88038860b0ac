#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/duration.h"
#include "watch/picture.h"

namespace lockbench::watch {

/// The clocks of watcher and store agree within this; an event this close to an expiry counts as
/// the expiry.
inline constexpr Duration kClockError = std::chrono::milliseconds(5);
/// If a holding ended this close to its expiry, we cannot tell release from expiry.
inline constexpr Duration kUndecidedWithin = std::chrono::milliseconds(100);

/// Salted, so that a hash cannot be traced to an owner even by trying all likely names.
std::uint64_t hash_of(std::string_view text, std::string_view salt);
std::string random_salt();
/// In place of the hash of an owner that was not looked at.
inline constexpr std::uint64_t kUnnamed = 0;
/// The first ten hexadecimal digits: enough for people to tell owners apart.
std::string shown_hash(std::uint64_t hash);

/// Who holds a lock, or waits for it.
struct Claim {
  std::uint64_t owner = kUnnamed;  ///< a hash
  TimePoint since{};
  std::uint32_t entries = 1;
  bool shared = false;
  bool began_unseen = false;  ///< began at an unknown time before `since`
  std::string shown{};        ///< the owner for people; only if they ask for it
};

/// The state of one lock between two sightings. Plain data.
struct LockRecord {
  std::string name;       ///< cut to Families::kLongestName bytes
  std::uint64_t key = 0;  ///< hash of endpoint and name
  std::uint32_t family = 0;
  std::uint16_t endpoint = 0;
  bool never_released = false;  ///< it was declared to end by expiry only
  Shape shape = Shape::unknown;
  bool known = false;       ///< has been sighted
  std::uint32_t epoch = 0;  ///< counts the times its source saw again after being blind
  TimePoint at{};           ///< of the latest sighting
  std::vector<Claim> holders;
  std::vector<Claim> waiters;  ///< empty if the store does not tell who waits
  std::uint64_t waiting = 0;
  std::optional<std::uint64_t> fence;
  // Of the present holding.
  std::optional<TimePoint> expiry;
  Duration ttl{};  ///< as it was granted or renewed
  bool no_ttl = false, had_ttl = false;
  /// Its owner moved the expiry to an earlier time: the work is done, and the lock is kept for its
  /// minimum time, as ShedLock does for lockAtLeastFor.
  bool given_back = false;
  bool long_counted = false, stopped_counted = false;  ///< as held_long, as renewal_stopped
  TimePoint extended{};                                ///< when granted or last renewed
  std::uint32_t renewals = 0;
  Duration renewal_interval{};  ///< the longest so far
  std::uint32_t changes = 0;    ///< of the lock's key since the grant
  // Of the past.
  std::uint32_t loose_changes = 0;  ///< changes while it was free that belong to no seen holding
  std::optional<TimePoint> expired_at;
  std::uint64_t expired_owner = 0;
  Counts counts;

  bool is_free() const { return holders.empty() && waiting == 0; }
  /// Whether the holder is seen to be alive: it renews the lock in time, or keeps a session.
  bool shows_life(TimePoint now) const;
  /// Whether a lock that was renewed regularly is overdue for its next renewal.
  bool renewal_stopped(TimePoint now) const;
  /// Whether the lock would stay if its holder died. False in the first second, for an EXPIRE in a
  /// second command.
  bool is_leak(TimePoint now) const;
};

/// The fewest changes of a holding.
inline constexpr std::uint64_t kGrantAndEnd = 2;

/// An event derived from a sighting.
struct Happening {
  enum class Kind {
    granted,
    renewed,
    released,
    expired,
    undecided,  ///< released or expired
    session_lost,
    owner_changed,
    lapsed,      ///< expired, in a family that is never released
    replaced,    ///< by another holder in a single change: released before, or written over
    given_back,  ///< no end: see LockRecord::given_back
    named,       ///< the owner of a holding that was granted unnamed; counts as no event
  };
  Kind kind = Kind::granted;
  std::uint64_t owner = kUnnamed;
  TimePoint at{};
  bool counted = true;  ///< a grant that was seen
  bool shared = false;  ///< granted in a shared mode
  /// Of a grant or a name: granted shortly after it had expired under another owner.
  bool took_over = false;
  bool was_renewed = false;        ///< expired: it had been renewed at least twice
  bool leaked = false;             ///< of an end: the lock had no TTL
  std::optional<Duration> lasted;  ///< of an end, if the whole holding was seen
  std::optional<Duration> waited;  ///< of a grant
  std::optional<Duration> margin;  ///< TTL left, of a release or a renewal
  bool thin = false;               ///< the margin is less than a tenth of the TTL
  std::optional<Duration> ttl;     ///< of a grant or a name
};

/// "owner_changed": as the result file names it.
std::string_view name_of(Happening::Kind kind);
/// The kind of finding that the event belongs to; empty: nothing is wrong.
std::string_view wrong_with(const Happening& event);

/// The events derived from one sighting.
struct Happenings {
  std::vector<Happening> list;
  /// Holdings that began and ended between two looks, so of unknown length.
  std::uint64_t unseen_holdings = 0;
  std::uint64_t unseen_releases = 0;  ///< of these: they were too short to end by expiry
  std::uint64_t unexplained = 0;      ///< changes that belong to no event and no unseen holding
  bool coalesced = false;             ///< several changes were merged into this
                                      ///< sighting
  std::optional<std::uint64_t> changes_of_holding;  ///< of a holding that was seen from grant to
                                                    ///< release
};

bool is_end(Happening::Kind kind);

/// Adds the events to the counts, except for the number of waiters.
void add(Counts& counts, const Happenings& happenings);

/// The facts about a source that a sighting is judged by.
struct Judgement {
  std::string_view salt;
  Accuracy accuracy = Accuracy::sampled;
  std::uint32_t epoch = 0;
  TimePoint sees_since{};
  /// The most changes of a key from grant to release, in its family; 0: not known, or locks are
  /// renewed, so that changes tell nothing of holdings.
  std::uint64_t changes_per_holding = 2;
  std::optional<Duration> shortest_ttl{};  ///< see FamilyBook
  bool never_released = false;             ///< its locks end by expiry by design
  bool shows_owners = false;
};

/// Updates the record to the sighted state and returns the events in between.
Happenings derive(LockRecord& record, Sighting sighting, const Judgement& judgement);

}  // namespace lockbench::watch

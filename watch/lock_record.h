#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/duration.h"
#include "watch/picture.h"

namespace lockbench::watch {

/// The clocks of watcher and store agree within this: what happens so close to an expiry happens
/// at it.
inline constexpr Duration kClockError = std::chrono::milliseconds(5);
/// An end that lies less than this before the expiry may have been either.
inline constexpr Duration kUndecidedWithin = std::chrono::milliseconds(100);

/// Without the salt, which nobody knows, it does not tell what was hashed, not even by trying all
/// likely owners.
std::uint64_t hash_of(std::string_view text, std::string_view salt);
std::string random_salt();
/// The first ten hexadecimal digits, by which people tell owners apart.
std::string shown_hash(std::uint64_t hash);

/// Who holds a lock, or waits for it.
struct Claim {
  std::uint64_t owner = 0;  ///< a hash
  TimePoint since{};
  std::uint32_t entries = 1;
  bool shared = false;
  bool began_unseen = false;  ///< it may have begun any time before `since`
};

/// All that is kept of one lock between two sightings. Plain data.
struct LockRecord {
  std::string name;       ///< of a long one the beginning
  std::uint64_t key = 0;  ///< the hash by which it is found
  std::uint32_t family = 0;
  std::uint16_t endpoint = 0;
  Shape shape = Shape::unknown;
  bool known = false;       ///< was sighted before
  std::uint32_t epoch = 0;  ///< of its source's sight
  TimePoint at{};           ///< of the latest sighting
  std::vector<Claim> holders;
  std::vector<Claim> waiters;  ///< as far as the store tells who
  std::uint64_t waiting = 0;
  std::optional<std::uint64_t> fence;
  // Of the present holding.
  std::optional<TimePoint> expiry;
  Duration ttl{};  ///< as it was granted or renewed
  bool no_ttl = false, had_ttl = false;
  TimePoint extended{};  ///< granted or renewed
  std::uint32_t renewals = 0;
  Duration renewal_interval{};  ///< the longest so far
  std::uint32_t changes = 0;    ///< of the key, since the grant
  // Of the past.
  std::uint32_t loose_changes = 0;  ///< while it was free, that no holding was seen of
  std::optional<TimePoint> expired_at;
  std::uint64_t expired_owner = 0;
  Counts counts;

  bool is_free() const { return holders.empty() && waiting == 0; }
  /// Was renewed often enough to say that it is not any more.
  bool renewal_stopped(TimePoint now) const;
  /// Would stay if its holder died, for longer than it takes to set a TTL in a second command.
  bool is_leak(TimePoint now) const;
};

/// One thing that followed from a sighting.
struct Happening {
  enum class Kind {
    granted,
    renewed,
    released,
    expired,
    undecided,  ///< released or expired
    session_lost,
    owner_changed,
  };
  Kind kind = Kind::granted;
  std::uint64_t owner = 0;
  TimePoint at{};
  bool counted = true;             ///< a grant that was seen
  bool shared = false;             ///< granted in a shared mode
  bool took_over = false;          ///< granted shortly after it had expired under another owner
  bool was_renewed = false;        ///< expired: it had been renewed at least twice
  bool leaked = false;             ///< ended: it had no TTL
  std::optional<Duration> lasted;  ///< of an end, if the whole holding was seen
  std::optional<Duration> waited;  ///< of a grant
  std::optional<Duration> margin;  ///< TTL left, of a release or a renewal
  bool thin = false;               ///< the margin is less than a tenth of the TTL
  std::optional<Duration> ttl;     ///< of a grant
};

/// "owner_changed": as the result file names it.
std::string_view name_of(Happening::Kind kind);

/// What follows from one sighting.
struct Happenings {
  std::vector<Happening> list;
  /// Holdings that began and ended between two looks: how long they lasted is not known.
  std::uint64_t unseen_holdings = 0;
  bool coalesced = false;                           ///< several changes came as one
  std::optional<std::uint64_t> changes_of_holding;  ///< of one that was seen whole
};

/// Counts what happened to a lock; not how many wait.
void add(Counts& counts, const Happenings& happenings);

/// What is known of the source when a sighting is judged.
struct Judgement {
  std::string_view salt;
  Accuracy accuracy = Accuracy::sampled;
  std::uint32_t epoch = 0;
  TimePoint sees_since{};
  /// The fewest changes of a key from grant to release, in its family.
  std::uint64_t changes_per_holding = 2;
};

/// Brings the record to the state that was sighted.
Happenings derive(LockRecord& record, Sighting sighting, const Judgement& judgement);

}  // namespace lockbench::watch

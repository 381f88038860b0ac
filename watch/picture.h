#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loadgen/record/histogram.h"
#include "results/file/observed.h"
#include "strategies/duration.h"
#include "watch/sighting.h"

namespace lockbench::watch {

using Counts = results::ObservedCounts;

/// What is known of a family of locks, or of one lock. Plain data: a picture is a copy, and reading
/// one never holds up a source.
struct Figures : results::ObservedFigures {
  std::uint64_t expired_after_renewal = 0;  ///< of the expired ones, those renewed at least twice
  std::uint64_t waiting_now = 0;
  std::optional<Duration> oldest_hold, oldest_wait;  ///< now
  loadgen::HistogramSnapshot hold, wait;             ///< of those that ended; of families only
  bool waits_known = false;                          ///< the store tells who waits or how many
  std::optional<Duration> smallest_margin;           ///< TTL left when released or renewed
  std::uint64_t owners = 0;  ///< distinct ones, estimated; a lock with a new token for each
                             ///< acquisition shows as many
  Accuracy accuracy = Accuracy::sampled;
};

/// Something that happened to a lock.
struct Moment {
  enum class Kind {
    granted,
    renewed,
    released,
    expired,
    undecided,  ///< released or expired
    session_lost,
    owner_changed,
    queue_changed,
  };
  TimePoint at{};
  Kind kind = Kind::granted;
  std::string holder;         ///< a hash; empty for queue_changed
  std::uint64_t waiting = 0;  ///< at that time
};

/// One lock, of the few that hurt most.
struct LockPicture {
  std::string name;  ///< for the terminal and the record; never in metrics
  std::string store, family;
  std::string endpoint{};  ///< of the source that sees it
  Shape shape = Shape::unknown;
  Figures figures;
  std::optional<std::string> holder;  ///< a hash
  std::optional<Duration> ttl_left;
  std::vector<Moment> history;  ///< the latest, a bounded number, oldest first
};

/// Waiters of a family over the last half minute, in three parts: the fewest in each of them.
struct Queue {
  std::uint64_t oldest = 0, middle = 0, latest = 0;
  bool known = false;  ///< watched for long enough

  bool only_grows() const { return known && oldest < middle && middle < latest; }
};

struct FamilyPicture {
  std::string store, family;
  Figures figures;
  std::uint64_t locks = 0;  ///< distinct locks seen; an estimate once some had to be forgotten
  Queue queue;
  std::string most_waited_for;  ///< the lock with most waiters now; empty: none
};

/// Something that on-call should know, with its evidence and what to do.
struct Finding {
  enum class Kind {
    held_long,        ///< longer than --held-longer, or than ten times the family's p99
    no_ttl,           ///< a lock without TTL: it stays if its holder dies
    expired,          ///< locks expired under their holders
    taken_over,       ///< and were taken by others at once
    stolen,           ///< the owner changed without a release
    renewal_stopped,  ///< a lock that was renewed in time is not any more
    thin_margin,      ///< released or renewed shortly before it would have expired
    convoy,           ///< the queue only grows
    hog,              ///< one client takes most
    dead_session,     ///< a lock ended with the session or connection of its holder
    blind,            ///< the watch itself does not see
  };
  Kind kind;
  std::string store, family;
  std::optional<std::string> lock;  ///< the worst
  std::uint64_t times = 1;
  std::string evidence;    ///< a sentence with figures
  std::string advice;      ///< a sentence: what to do
  std::string endpoint{};  ///< of a source that does not see
};

struct SourcePicture {
  SourceFacts facts;
  bool sees = true;
  std::string blind_reason;
  double blind_seconds = 0;  ///< in total
  std::uint64_t missed = 0, commands = 0;
  std::string missed_reason;
};

/// Everything that a watch knows at one time.
struct Picture {
  TimePoint at{};
  Duration watched{};
  std::vector<SourcePicture> sources;
  std::vector<FamilyPicture> families;  ///< a bounded number: the rest is in the family "other"
  std::vector<LockPicture> worst;       ///< a bounded number, those that hurt most first
  std::vector<Finding> findings;
  std::vector<std::string> proposals;  ///< patterns that look like locks
  std::uint64_t locks_unfollowed = 0;  ///< beyond the memory's bound
};

}  // namespace lockbench::watch

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/file/distribution.h"

// What `watch` saw, as the result file has it.
namespace lockbench::results {

/// How often each thing happened to one lock, or to the locks of a family, since the watch began.
struct ObservedCounts {
  std::uint64_t acquisitions = 0, releases = 0;
  std::uint64_t renewals = 0;  ///< seen as a TTL that grew under the same holder
  std::uint64_t expired_while_held = 0;
  std::uint64_t undecided = 0;  ///< ended so close to the expiry that either is possible
  std::uint64_t session_lost = 0;
  std::uint64_t taken_over = 0;     ///< taken by another client shortly after it had expired
  std::uint64_t owner_changed = 0;  ///< without a release in between that could be seen
  std::uint64_t without_ttl = 0;    ///< ended, and never had a TTL, where the store has one
  std::uint64_t thin_margins = 0;   ///< released or renewed with less than a tenth of the TTL left
  std::uint64_t most_waiting = 0;   ///< at once, so far
};

/// With what is so now.
struct ObservedFigures : ObservedCounts {
  std::uint64_t held_now = 0;
  std::uint64_t without_ttl_now = 0;      ///< of those held now
  std::uint64_t held_long_now = 0;        ///< longer than usual, or than the user allows
  std::uint64_t renewal_stopped_now = 0;  ///< were renewed in time, and are not any more
  double acquisitions_per_second = 0;     ///< in the last seconds
  double largest_share = 0;               ///< of the acquisitions, of the client that took most
};

/// Locks of one family as a watch saw them. How exact counts are says `accuracy`: "exact",
/// "at_least" or "sampled". results/tables/observed.h says where each figure goes.
struct Observed : ObservedFigures {
  std::string store, family, source, accuracy;
  std::uint64_t locks = 0;                   ///< distinct ones
  std::uint64_t no_ttl = 0;                  ///< those that ended without a TTL, and those held now
  std::optional<std::uint64_t> waiting_now;  ///< nothing: the store does not tell
  double oldest_hold = 0, oldest_wait = 0;   ///< seconds, now; 0: none
  Distribution hold;
  std::optional<Distribution> wait;  ///< nothing: the store does not tell
  std::optional<double> margin_min;  ///< seconds of the TTL left at a release or renewal
  std::uint64_t missed = 0;          ///< changes of this store that were not looked at
};

/// One of the locks that hurt most, with what happened to it last.
struct ObservedLock {
  struct Moment {
    double t = 0;  ///< seconds since the watch began
    std::string what, holder;
    std::uint64_t waiting = 0;
  };

  std::string store, endpoint, family, lock, shape;
  std::string trouble;                ///< what is wrong with it, in a word or two; empty: nothing
  std::optional<std::string> holder;  ///< a hash; nothing: it is free
  std::optional<double> held_seconds, ttl_left_seconds;
  std::optional<std::uint64_t> waiting_now;
  std::uint64_t acquisitions = 0, expired_while_held = 0, most_waiting = 0;
  std::vector<Moment> history;
};

/// Something that on-call should know.
struct ObservedFinding {
  std::string kind, store, family;
  std::optional<std::string> lock;  ///< the worst
  std::uint64_t times = 0;
  std::string evidence, advice;
};

/// A server that was watched, and how well it could be seen.
struct ObservedSource {
  std::string store, endpoint, way, accuracy, waiters;
  std::vector<std::string> unseen;  ///< what it cannot see, a sentence each
  double watched_seconds = 0, blind_seconds = 0;
  std::uint64_t missed = 0, commands = 0;
};

}  // namespace lockbench::results

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/file/distribution.h"

// What `watch` saw, as the result file has it.
namespace lockbench::results {

/// Locks of one family as a watch saw them. How exact counts are says `accuracy`: "exact",
/// "at_least" or "sampled".
struct Observed {
  std::string store, family, source, accuracy;
  std::uint64_t locks = 0;  ///< distinct ones
  std::uint64_t acquisitions = 0, releases = 0, renewals = 0, expired_while_held = 0;
  std::uint64_t undecided = 0;  ///< ended by a release or by expiry
  std::uint64_t session_lost = 0, taken_over = 0, owner_changed = 0, no_ttl = 0;
  std::uint64_t thin_margins = 0;
  std::uint64_t held_now = 0;                ///< at the end
  std::optional<std::uint64_t> waiting_now;  ///< nothing: the store does not tell
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

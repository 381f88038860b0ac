#pragma once

#include <string>

#include "strategies/lease.h"

// Names and rules of `chubby` (Burrows, "The Chubby lock service for loosely-coupled distributed
// systems", 2006).
namespace lockbench::etcd {

// The keys of a lock. LOCK/queue/ holds a key for each client that wants or has the lock, on the
// lease of its session. LOCK/guard/ holds a key for each holder, on a lease that outlives the
// session by the lock-delay. Both contain the mode ("x" or "s"), so that a shared request can look
// at exclusive ones only.
inline std::string queue_of(const std::string& lock) { return lock + "/queue/"; }
inline std::string guards_of(const std::string& lock) { return lock + "/guard/"; }
inline const char* letter_of(Mode mode) { return mode == Mode::exclusive ? "x/" : "s/"; }

/// A client's knowledge of its session (Burrows, 2.8). The session is safe while the store has
/// confirmed it lately, and in jeopardy after the end of its validity, when it may or may not still
/// exist; a confirmation makes it safe again. It has expired when the store says so, or after a
/// grace period.
enum class SessionStanding { safe, jeopardy, expired };

inline SessionStanding standing_of(const LeaseState& session, TimePoint now, Duration grace) {
  if (session.lost_at()) return SessionStanding::expired;
  const TimePoint valid_until = session.valid_until();
  if (now < valid_until) return SessionStanding::safe;
  return now - valid_until < grace ? SessionStanding::jeopardy : SessionStanding::expired;
}

}  // namespace lockbench::etcd

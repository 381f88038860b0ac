#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "strategies/etcd/client/connection.h"
#include "strategies/lease.h"

// The parts of Chubby's contract that other programs can use (Burrows, "The Chubby lock service for
// loosely-coupled distributed systems", 2006).
namespace lockbench::etcd {

// The keys of a lock. LOCK/queue/ holds a key for each client that wants or has the lock, on the
// lease of its session. LOCK/guard/ holds a key for each holder, on a lease that outlives the
// session by the lock-delay. Both contain the mode ("x" or "s"), so that a shared request can look
// at exclusive ones only.
inline std::string queue_of(const std::string& lock) { return lock + "/queue/"; }
inline std::string guards_of(const std::string& lock) { return lock + "/guard/"; }
inline std::string_view letter_of(Mode mode) { return mode == Mode::exclusive ? "x/" : "s/"; }
inline std::string queue_of(const std::string& lock, Mode mode) {
  return queue_of(lock).append(letter_of(mode));
}
inline std::string guards_of(const std::string& lock, Mode mode) {
  return guards_of(lock).append(letter_of(mode));
}

/// What a client knows about its session (Burrows, 2.8). It is safe while the store has confirmed
/// it lately, and in jeopardy after the end of its validity, when it may or may not still exist; a
/// confirmation makes it safe again. It has expired when the store says so, or after a grace
/// period.
enum class SessionStanding { safe, jeopardy, expired };

inline SessionStanding standing_of(const LeaseState& session, TimePoint now, Duration grace) {
  if (session.lost_at()) return SessionStanding::expired;
  const TimePoint valid_until = session.valid_until();
  if (now < valid_until) return SessionStanding::safe;
  return now - valid_until < grace ? SessionStanding::jeopardy : SessionStanding::expired;
}

/// What the holder of a lock shows to the servers that it works with (Burrows, 2.4). Each grant of
/// a lock has a higher generation than those before it.
struct Sequencer {
  std::string name;  ///< of the lock
  Mode mode = Mode::exclusive;
  std::uint64_t generation = 0;

  bool operator==(const Sequencer&) const = default;
};

/// For a lease that chubby has granted.
Sequencer sequencer_of(const Lease& lease);

/// For a server that is shown a sequencer: whether the lock is held in this mode and generation, by
/// a session that exists. On the server's own connection.
StoreResult<bool> check_sequencer(Connection& etcd, const Sequencer& sequencer,
                                  const std::stop_token& stop = {});

}  // namespace lockbench::etcd

#pragma once

#include <string_view>

#include "strategies/lease.h"

namespace lockbench::etcd {

/// What a client knows of its session (Burrows 2006, 2.8): safe while the store has confirmed it
/// lately; in jeopardy once its validity is over unconfirmed, when it may or may not be there
/// still; expired when the store says so, or when a grace period has passed. One that is confirmed
/// in time is safe again.
enum class SessionStanding { safe, jeopardy, expired };

inline SessionStanding standing_of(const LeaseState& session, TimePoint now, Duration grace) {
  if (session.lost_at()) return SessionStanding::expired;
  const TimePoint valid_until = session.valid_until();
  if (now < valid_until) return SessionStanding::safe;
  return now - valid_until < grace ? SessionStanding::jeopardy : SessionStanding::expired;
}

inline std::string_view to_string(SessionStanding standing) {
  switch (standing) {
    case SessionStanding::safe:
      return "safe";
    case SessionStanding::jeopardy:
      return "jeopardy";
    case SessionStanding::expired:
      return "expired";
  }
  return "?";
}

}  // namespace lockbench::etcd

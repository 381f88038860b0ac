#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/renewal.h"

namespace lockbench::etcd {

/// A client's session: a lease, and in some protocols a second one that outlives it.
struct Session {
  std::vector<LeaseId> leases;        ///< the first is the session's own
  Duration ttl{};                     ///< of the session's own lease, as granted
  std::shared_ptr<LeaseState> state;  ///< null while it is opened
  std::shared_ptr<Renewal> renewal;   ///< likewise
  int places = 0;                     ///< locks held or queued for on it
  bool retired = false;               ///< takes no new locks, and ends with its last one
};

/// One acquisition's place in a lock's queue.
struct Place {
  std::string lock;   ///< the lock's key
  std::string token;  ///< the last part of the names of its keys
  Mode mode = Mode::exclusive;
  std::int64_t revision = 0;  ///< in which its key was created; 0: not yet
  std::shared_ptr<Session> session;
};

/// A place's standing, by one answer of the store.
struct Standing {
  bool there = true;  ///< the place exists
  bool granted = false;
  std::uint64_t fencing = 0;          ///< of the grant
  std::optional<std::string> behind;  ///< the key that must be deleted first, if known
};

/// The part that locks in etcd share. A client has one session per TTL, which the run's
/// RenewalScheduler keeps alive. Each acquisition has a key on the session's lease; the revision in
/// which it was created is its place in the queue. A client watches the place before its own, and
/// looks again when it is deleted. After a lost answer the session is retired and a new one begun,
/// so a late command leaves a contender behind only while other locks of that session are held.
class LeaseQueueLock : public LockStrategy {
 public:
  /// Uses the first etcd endpoint. Throws std::invalid_argument if there is none.
  explicit LeaseQueueLock(const Context& context);
  ~LeaseQueueLock() override;

  StoreResult<void> connect() final { return etcd_.connect(); }
  AcquireResult acquire(const AcquireRequest& request) final;
  ReleaseResult release(const Lease& lease) final;

 protected:
  using Looked = StoreResult<std::optional<Standing>>;

  /// By how much a session's second lease outlives its own; nothing: it has none.
  virtual std::optional<Duration> outlasts_by() const { return std::nullopt; }
  /// Whether the session can be used; may wait to find out.
  virtual bool usable(const Session& session, const AcquireRequest& request);
  /// Creates the place. Nothing: the session's lease is gone.
  virtual Looked enter(Place& place, const std::stop_token& stop) = 0;
  /// Looks again and takes the lock if it is this place's turn.
  virtual Looked look(const Place& place, const std::stop_token& stop) = 0;
  /// Releases the lock or leaves the queue. False if the place is gone already.
  virtual StoreResult<bool> leave(const Place& place, const std::stop_token& stop) = 0;

  Connection& etcd() { return etcd_; }
  Env& env() { return env_; }

 private:
  class Acquisition;

  StoreResult<std::shared_ptr<Session>> session_for(const AcquireRequest& request);
  StoreResult<std::shared_ptr<Session>> open_session(const AcquireRequest& request);
  /// Adds a lease to a session that is opened, or ends the session.
  StoreResult<GrantedLease> add_lease(Session& session, Duration ttl,
                                      const AcquireRequest& request);
  /// The place is gone. Ends its session if that is retired and this was its last place.
  void give_up(Place& place, const std::stop_token& stop);
  /// The place could not be left and may still exist. Retires its session; if that goes on for
  /// other locks, the next acquisition or release leaves the place.
  void leave_later(Place& place, const std::stop_token& stop);
  void leave_pending(const std::stop_token& stop);
  void retire(const std::shared_ptr<Session>& session);
  /// It takes no new locks, and expires after its last one.
  void forget(const std::shared_ptr<Session>& session);
  void end(Session& session, std::string_view key, const std::stop_token& stop);

  const Context context_;
  const Endpoint endpoint_;
  Env& env_;
  Connection etcd_;
  std::map<std::int64_t, std::shared_ptr<Session>> sessions_;  ///< by the seconds asked for
  std::unordered_map<std::string, Place> held_;                ///< by token
  std::vector<Place> pending_;                                 ///< to be left, on retired sessions
};

// Names and rules of `chubby` (Burrows, "The Chubby lock service for loosely-coupled distributed
// systems", 2006).

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

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/keep_alive.h"

namespace lockbench::etcd {

/// What a client's locks live on: a lease, and where the protocol has one a second that outlives
/// it.
struct Session {
  std::vector<KeptLease> leases;  ///< the first is the session's own
  int places = 0;                 ///< locks held or queued for on it
  bool retired = false;           ///< it takes no new ones, and ends with the last it has

  const KeptLease& own() const { return leases.front(); }
  LeaseState& state() const { return *own().state(); }
};

/// One acquisition's place in a lock's queue.
struct Place {
  std::string lock;   ///< the lock's key
  std::string token;  ///< the last part of the names of the keys that are its own
  Mode mode = Mode::exclusive;
  std::int64_t revision = 0;  ///< in which it was created; 0: not yet
  std::shared_ptr<Session> session;
};

/// How a place stands, as one answer of the store said.
struct Standing {
  bool there = true;  ///< the place has not gone
  bool granted = false;
  std::uint64_t fencing = 0;          ///< of the grant
  std::optional<std::string> behind;  ///< the key that must go first; nothing: none is known
};

/// What locks in etcd share: a client has one session per TTL, kept alive off its thread, and each
/// acquisition a key under it, whose revision of creation is its place in the queue. Everybody
/// watches the place before his own, and looks again when that has gone. Whatever becomes doubtful
/// for a lost answer goes with its session, which is given up for a new one: so a command that
/// comes late leaves no contender behind for longer than the other locks of that session are held.
class QueuedLock : public LockStrategy {
 public:
  /// Uses the first etcd endpoint. Throws std::invalid_argument if there is none.
  explicit QueuedLock(const Context& context);
  ~QueuedLock() override;

  StoreResult<void> connect() final { return etcd_.connect(); }
  AcquireResult acquire(const AcquireRequest& request) final;
  ReleaseResult release(const Lease& lease) final;
  /// The session is prolonged, by itself.
  RenewResult renew(const Lease&, Duration) final { return {RenewOutcome::unsupported, {}}; }

 protected:
  using Looked = StoreResult<std::optional<Standing>>;

  /// The TTLs of a session's leases.
  virtual std::vector<Duration> lease_ttls(Duration ttl) const { return {ttl}; }
  /// Whether the session may be used now; may wait for that.
  virtual bool usable(const Session& session, const AcquireRequest& request);
  /// Creates the place. Nothing: its session's lease is gone.
  virtual Looked enter(Place& place, const std::stop_token& stop) = 0;
  /// Looks again, and takes the lock if it is its turn.
  virtual Looked look(const Place& place, const std::stop_token& stop) = 0;
  /// Frees the lock, or leaves the queue. False if the place has gone already.
  virtual StoreResult<bool> leave(const Place& place, const std::stop_token& stop) = 0;

  Connection& etcd() { return etcd_; }
  Env& env() { return env_; }
  const StrategyOptions& options() const { return context_.options; }

 private:
  class Acquisition;

  StoreResult<std::shared_ptr<Session>> session_for(const AcquireRequest& request);
  StoreResult<std::shared_ptr<Session>> open_session(const AcquireRequest& request);
  /// The place is held or queued for no more. Its session ends if it is retired and has no other.
  void give_up(Place& place, const std::stop_token& stop);
  /// Likewise, but it is there still, or may be. Its session takes no new ones; if it has to go on
  /// for other locks, this one is left as soon as the store can be asked again.
  void owe(Place& place, const std::stop_token& stop);
  void leave_owed(const std::stop_token& stop);
  void retire(const std::shared_ptr<Session>& session);
  void end(Session& session, std::string_view key, const std::stop_token& stop);

  const Context context_;
  const Endpoint endpoint_;
  Env& env_;
  Connection etcd_;
  std::map<std::int64_t, std::shared_ptr<Session>> sessions_;  ///< by the seconds asked for
  std::unordered_map<std::string, Place> held_;                ///< by token
  std::vector<Place> owed_;  ///< not left yet, on retired sessions
};

/// What breaks every lock on etcd that lives in a session, behind its own weaknesses.
std::vector<KnownHazard> with_session_hazards(std::vector<KnownHazard> own);

}  // namespace lockbench::etcd

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/zookeeper/client/session.h"

namespace lockbench::zookeeper {

/// What the locks share whose proof is an ephemeral node: a session per client, which lasts for as
/// long as the server hears of it within the TTL that it granted; nodes that are given up leave
/// nothing behind. A session is that of the TTL which was asked for first, while it holds leases.
class NodeLock : public LockStrategy {
 public:
  explicit NodeLock(const Context& context);
  ~NodeLock() override { session_->close(); }

  StoreResult<void> connect() final;
  AcquireResult acquire(const AcquireRequest& request) final;
  ReleaseResult release(const Lease& lease) final;
  RenewResult renew(const Lease& /*lease*/, Duration /*ttl*/) final {
    return {RenewOutcome::unsupported, {}};
  }

 protected:
  /// What the client has of the lock that it asks for.
  struct Claim {
    std::string key, lock;  ///< the key, and the node that stands for it
    std::string node;       ///< its own, or the beginning of its name; empty: none
    std::uint64_t fencing{};
  };

  /// A new acquisition begins.
  virtual void begin(const Claim& claim) = 0;
  /// Asks for the lock, or where the claim stands in the queue; sets the claim's node and, if
  /// granted, its fencing number.
  virtual StoreResult<bool> ask(Claim& claim, const std::stop_token& stop) = 0;
  /// After it was not granted. Returns when it is worth asking again.
  virtual WaitResult wait_turn(const Claim& claim, TimePoint deadline,
                               const std::stop_token& stop) = 0;
  /// Makes sure that there is no such node of ours.
  virtual StoreResult<void> give_up(const Claim& claim, const std::stop_token& stop) = 0;

  /// The one reply to one request.
  StoreResult<Reply> call(Request::Kind kind, std::string path, std::string_view key,
                          const std::stop_token& stop);
  /// Makes sure that there is such a node, and those above it.
  StoreResult<void> make_path(std::string_view path, std::string_view key,
                              const std::stop_token& stop);

  Session& session() { return *session_; }
  Env& env() { return env_; }

 private:
  StoreResult<bool> try_once(const AcquireRequest& request, Claim& claim);
  void withdraw(AcquireResult& result, const Claim& claim, const std::stop_token& stop);
  /// It could not be given up: it must not stay for as long as the session does.
  void abandon(Claim claim);
  void give_up_abandoned(const std::stop_token& stop);

  Env& env_;
  const std::shared_ptr<Session> session_;
  std::uint64_t claimed_in_ = 0;  ///< the session's number
  std::vector<Claim> abandoned_;  ///< of the present session
};

/// What breaks every lock that lives in a ZooKeeper session, behind its own weaknesses.
std::vector<KnownHazard> with_session_hazards(std::vector<KnownHazard> own);

}  // namespace lockbench::zookeeper

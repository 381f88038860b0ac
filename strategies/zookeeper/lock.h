#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/zookeeper/client/session.h"

namespace lockbench::zookeeper {

/// The common part of locks made of ephemeral nodes: one session per client, which lasts as long as
/// the server hears from it within the granted TTL, and the removal of abandoned nodes. While a
/// session holds leases, it keeps its first TTL.
class NodeLock : public LockStrategy {
 public:
  explicit NodeLock(const Context& context);
  ~NodeLock() override { session_->close(); }

  StoreResult<void> connect() final;
  AcquireResult acquire(const AcquireRequest& request) final;
  ReleaseResult release(const Lease& lease) final;

 protected:
  /// A client's share in the lock that it requests.
  struct Claim {
    std::string key, lock;  ///< the key and its node
    std::string node;       ///< the client's node, or a prefix of its name; empty: none
    std::optional<std::uint64_t> fencing{};
  };

  /// Called at the start of an acquisition.
  virtual void begin(const Claim& claim) = 0;
  /// Asks for the lock, or for the claim's place in the queue. Sets the claim's node and, if
  /// granted, its fencing number.
  virtual StoreResult<bool> ask(Claim& claim, const std::stop_token& stop) = 0;
  /// Waits after a refusal until it is worth asking again.
  virtual WaitResult wait_turn(const Claim& claim, TimePoint deadline,
                               const std::stop_token& stop) = 0;
  /// Makes sure that the claim's node does not exist.
  virtual StoreResult<void> give_up(const Claim& claim, const std::stop_token& stop) = 0;

  /// Sends one request and returns its reply.
  StoreResult<Reply> call(Request::Kind kind, std::string path, std::string_view key,
                          const std::stop_token& stop);
  /// The same after a lost answer: the session may have moved to a server that has not seen the
  /// lost request yet, so this server first catches up.
  StoreResult<Reply> call_in_sync(Request::Kind kind, const std::string& path, std::string_view key,
                                  const std::stop_token& stop);
  /// Sends these requests, the first of which makes the claim's node. If its parents are missing,
  /// makes them and repeats the requests. Without an answer the claim keeps its node, which may
  /// exist.
  StoreResult<std::vector<Reply>> make_node(std::span<const Request> requests, Claim& claim,
                                            const std::stop_token& stop);

  /// Makes sure that the node and its parents exist.
  StoreResult<void> make_path(std::string_view path, std::string_view key,
                              const std::stop_token& stop);

  Session& session() { return *session_; }
  Env& env() { return env_; }

 private:
  StoreResult<bool> try_once(const AcquireRequest& request, Claim& claim);
  void withdraw(AcquireResult& result, const Claim& claim, const std::stop_token& stop);
  ReleaseResult give_back(const Lease& lease);
  /// A claim's node could not be removed. Ends the session if that has no leases; otherwise the
  /// claim is remembered, for the next acquisition or release to remove its node.
  void abandon(Claim claim);
  void remove_abandoned(const std::stop_token& stop);

  Env& env_;
  std::unique_ptr<Session> session_;
  std::uint64_t claimed_in_ = 0;  ///< the session's number
  std::vector<Claim> abandoned_;  ///< of the current session
};

/// With the servers' defaults, syncLimit = 5 and tickTime = 2 s.
inline constexpr SafeSession kSafeSession{
    std::chrono::seconds(12),
    "above syncLimit × tickTime, 10 s by default, for which an isolated member still answers"};

/// With what is common to them, and with the hazards that follow.
inline Descriptor on_zookeeper(Descriptor lock) {
  lock.backend = "zookeeper";
  lock.safe_session = kSafeSession;
  lock.traits.expiry = Expiry::session;
  lock.traits.waiting = WaitPolicy::notify();
  lock.traits.waiting_choices = {};
  // A client of an isolated member learns late that its session has ended.
  lock.hazards.insert(lock.hazards.begin(), {"member-isolated", HazardOutcome::double_grant});
  return with_known_hazards(std::move(lock));
}

}  // namespace lockbench::zookeeper

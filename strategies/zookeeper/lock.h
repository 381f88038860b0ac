#pragma once

#include <string>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/zookeeper/client/session.h"

namespace lockbench::zookeeper {

/// The part that all locks made of ephemeral nodes share: one session per client, which lasts as
/// long as the server hears from it within the granted TTL, and the removal of nodes that are given
/// up. While a session holds leases, it keeps the TTL that it was begun with.
class NodeLock : public LockStrategy {
 public:
  explicit NodeLock(const Context& context);
  ~NodeLock() override { session_->close(); }

  StoreResult<void> connect() final;
  AcquireResult acquire(const AcquireRequest& request) final;
  ReleaseResult release(const Lease& lease) final;

 protected:
  /// A client's part in the lock that it asks for.
  struct Claim {
    std::string key, lock;  ///< the key and its node
    std::string node;       ///< the client's node, or a prefix of its name; empty: none
    std::uint64_t fencing{};
  };

  /// Called at the start of an acquisition.
  virtual void begin(const Claim& claim) = 0;
  /// Asks for the lock, or for the claim's place in the queue. Sets the claim's node and, if
  /// granted, its fencing number.
  virtual StoreResult<bool> ask(Claim& claim, const std::stop_token& stop) = 0;
  /// Waits after a refusal, until it is worth asking again.
  virtual WaitResult wait_turn(const Claim& claim, TimePoint deadline,
                               const std::stop_token& stop) = 0;
  /// Makes sure that the claim's node does not exist.
  virtual StoreResult<void> give_up(const Claim& claim, const std::stop_token& stop) = 0;

  /// Sends one request and returns its reply.
  StoreResult<Reply> call(Request::Kind kind, std::string path, std::string_view key,
                          const std::stop_token& stop);
  /// The same after a lost answer, which a server that the session has come to since may not have
  /// heard of yet: it catches up first.
  StoreResult<Reply> call_in_sync(Request::Kind kind, const std::string& path, std::string_view key,
                                  const std::stop_token& stop);
  /// Sends these requests, the first of which makes the claim's node; again after making the nodes
  /// above it where those are missing. Without an answer the claim keeps its node, which may exist.
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
  /// The claim's node could not be removed: it must not stay until the session ends.
  void abandon(Claim claim);

  Env& env_;
  std::unique_ptr<Session> session_;
  std::uint64_t claimed_in_ = 0;  ///< the session's number
  std::vector<Claim> abandoned_;  ///< of the current session
};

/// With the defaults of the servers, syncLimit = 5 and tickTime = 2 s.
inline constexpr SafeSession kSafeSession{
    std::chrono::seconds(12),
    "above syncLimit × tickTime, 10 s by default, for which a member that is cut off answers"};

}  // namespace lockbench::zookeeper

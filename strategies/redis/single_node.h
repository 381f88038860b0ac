#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/redis/connection.h"

namespace lockbench::redis {

/// What all locks on one Redis share: the connection, waiting, and tidying up after a lost answer.
/// A strategy adds its commands.
class SingleNodeLock : public LockStrategy {
 public:
  /// Uses the first Redis endpoint.
  explicit SingleNodeLock(const Context& context);

  StoreResult<void> connect() final { return redis_->connect(); }
  AcquireResult acquire(const AcquireRequest& request) final;

 protected:
  /// Asks once. `lease` comes with key and a token that is this acquisition's own; the strategy
  /// sets its state when granted. False: somebody else has it.
  virtual StoreResult<bool> try_acquire(const AcquireRequest& request, Lease& lease) = 0;

  /// After a lost answer: frees the lock if it turns out to be held by this very acquisition. A
  /// stop ends this too, once the command is on its way. Nothing by default, as a lock without a
  /// token cannot be told from another's.
  virtual void undo(const Lease& /*lease*/, const std::stop_token& /*stop*/) {}

  /// What the store will know this acquisition by, if the protocol writes it down.
  virtual std::string make_token() { return {}; }

  /// SET key value NX PX ttl, and the lease's validity from the moment before it was sent.
  StoreResult<bool> set_nx_px(const AcquireRequest& request, Lease& lease, std::string_view value);

  Connection& redis() { return *redis_; }
  Env& env() { return env_; }
  int client() const { return client_; }

 private:
  Env& env_;
  const WaitPolicy waiting_;
  const int client_;
  std::unique_ptr<Connection> redis_;
};

/// For locks whose value is the owner's token: the release and renewal that look at it in one step.
class TokenLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;
  ReleaseResult release(const Lease& lease) override;
  RenewResult renew(const Lease& lease, Duration ttl) override;

 protected:
  void undo(const Lease& lease, const std::stop_token& stop) override;
  std::string make_token() override { return random_token(env()); }
};

/// DEL, whoever holds it.
ReleaseResult release_unchecked(Connection& redis, const Lease& lease,
                                const std::stop_token& stop = {});
/// PEXPIRE, whoever holds it.
RenewResult renew_unchecked(Connection& redis, Env& env, const Lease& lease, Duration ttl);

/// For locks that are freed and prolonged without a look at whose they are: DEL and PEXPIRE.
class UncheckedLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;
  ReleaseResult release(const Lease& lease) override { return release_unchecked(redis(), lease); }
  RenewResult renew(const Lease& lease, Duration ttl) override {
    return renew_unchecked(redis(), env(), lease, ttl);
  }
};

/// The answer to a release or renewal that counts what it changed: 1 or 0.
ReleaseResult to_release_result(const StoreResult<Reply>& reply);
RenewResult to_renew_result(const StoreResult<Reply>& reply, const Lease& lease, Env& env,
                            TimePoint asked_at, Duration granted);

inline std::shared_ptr<LeaseState> valid_until(TimePoint end) {
  return std::make_shared<LeaseState>(end);
}

// What breaks it: a strategy's own weaknesses first, then those that it shares.

/// Every lock that lives on one Redis.
std::vector<KnownHazard> with_one_redis_hazards(std::vector<KnownHazard> own);
/// And is not renewed: whatever outlasts its validity breaks it.
std::vector<KnownHazard> with_overrun_hazards(std::vector<KnownHazard> own);
/// And whose key has a TTL, which the server's clock or memory may end early.
std::vector<KnownHazard> with_ttl_hazards(std::vector<KnownHazard> own);
/// What a release that does not look at the owner adds: to be put among a strategy's own.
std::vector<KnownHazard> with_unchecked_release(std::vector<KnownHazard> own);

}  // namespace lockbench::redis

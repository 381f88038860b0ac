#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "strategies/redis/client/single_node.h"
#include "tests/support/broken_locks.h"

namespace lockbench::test {

/// The textbook lock, which every broken one is but for its flaw.
const Descriptor& sound_lock();

/// A connection to where the lock lives. Throws std::invalid_argument without an endpoint.
std::unique_ptr<redis::Connection> connection_to(const Context& context, Env& env);

/// Passes everything on to a sound lock. Has a connection of its own for what that would not do.
class Flawed : public LockStrategy {
 public:
  explicit Flawed(const Context& context);

  StoreResult<void> connect() override { return sound_->connect(); }
  AcquireResult acquire(const AcquireRequest& request) override { return sound_->acquire(request); }
  ReleaseResult release(const Lease& lease) override { return sound_->release(lease); }
  RenewResult renew(const Lease& lease, Duration ttl) override { return sound_->renew(lease, ttl); }

 protected:
  LockStrategy& sound() { return *sound_; }
  redis::Connection& redis() { return *redis_; }
  Env& env() { return env_; }
  /// The sound lock, without waiting.
  AcquireResult try_once(AcquireRequest request);

 private:
  Env& env_;
  std::unique_ptr<LockStrategy> sound_;
  std::unique_ptr<redis::Connection> redis_;
};

using Factories = std::map<Flaw, std::function<std::unique_ptr<LockStrategy>(const Context&)>>;

/// Locks that deal wrongly with their store: what they send, and what they make of its failures.
Factories locks_broken_towards_the_store();
/// Locks that deal wrongly with what clients share: renewal and notification.
Factories locks_broken_towards_the_services();

}  // namespace lockbench::test

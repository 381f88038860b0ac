#pragma once

#include <string>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/memcached/client/connection.h"

namespace lockbench::memcached {

/// The part that all locks on one memcached server share: `add key token ttl`, which succeeds for
/// one client only, and polling. A strategy adds the release and the renewal.
class AddLock : public LockStrategy {
 public:
  /// Uses the first memcached endpoint.
  explicit AddLock(const Context& context);

  StoreResult<void> connect() final { return memcached_.connect(); }
  AcquireResult acquire(const AcquireRequest& request) final;

 protected:
  /// After a lost or late answer: frees the lock if this acquisition holds it. Does nothing by
  /// default, for locks that do not check the owner.
  virtual StoreResult<void> take_back(const Lease& /*lease*/, const std::stop_token& /*stop*/) {
    return {};
  }

  Connection& memcached() { return memcached_; }
  Env& env() { return env_; }

 private:
  StoreResult<bool> add(const AcquireRequest& request, Lease& lease);

  Env& env_;
  const WaitPolicy waiting_;
  Connection memcached_;
};

/// What breaks every lock that lives on one memcached server and is not renewed.
inline constexpr KnownHazard kMemcachedHazards[] = {
    {"pause-holding", HazardOutcome::lost_update},
    {"pause-holding-fenced", HazardOutcome::lost_update},
    {"overrun-holding-fenced", HazardOutcome::lost_update},
    {"overrun-holding", HazardOutcome::known_loss},
    {"partition-holder", HazardOutcome::known_loss},
    {"store-restart-empty", HazardOutcome::double_grant},
    {"memcached-eviction", HazardOutcome::double_grant},
    {"rogue-delete", HazardOutcome::double_grant},
    {"reentry", HazardOutcome::self_deadlock}};

}  // namespace lockbench::memcached

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

}  // namespace lockbench::memcached

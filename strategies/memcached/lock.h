#pragma once

#include <string>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/memcached/client/connection.h"

namespace lockbench::memcached {

/// What all locks on one memcached share: `add key token ttl`, which only one client can do, and
/// polling. A strategy adds how it gives the lock back.
class AddLock : public LockStrategy {
 public:
  /// Uses the first memcached endpoint.
  explicit AddLock(const Context& context);

  StoreResult<void> connect() final { return memcached_.connect(); }
  AcquireResult acquire(const AcquireRequest& request) final;

 protected:
  /// After a lost answer, or one that came too late: frees the lock if it turns out to be held by
  /// this very acquisition. Nothing by default, for a lock that is released without a look at whose
  /// it is.
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

/// The answer to a release or renewal that says whether it changed anything.
ReleaseResult to_release_result(const StoreResult<bool>& changed);
RenewResult to_renew_result(const StoreResult<bool>& changed, const Lease& lease, Env& env,
                            TimePoint asked_at, Duration kept);

/// What breaks every lock that lives on one memcached and is not renewed, behind its own
/// weaknesses.
std::vector<KnownHazard> with_memcached_hazards(std::vector<KnownHazard> own);

}  // namespace lockbench::memcached

#pragma once

#include <string>
#include <vector>

#include "strategies/redis/client/single_node.h"

namespace lockbench::redis {

/// The lock whose value is the time at which it runs out, by the clock of whoever wrote it: what
/// redis-getset and redis-getset-cas share. The key itself never expires.
class GetsetLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override;
  /// DEL, but only if the own expiry has not passed by the own clock.
  ReleaseResult give_back(const Lease& lease) override;
  RenewResult renew(const Lease&, Duration) override { return {RenewOutcome::unsupported, {}}; }

 protected:
  /// Is the lock granted, given what GET saw and what GETSET then replaced?
  virtual bool takes_over(const Reply& seen, const Reply& replaced) = 0;

  /// True if the value is a time that has passed. A value that is no time never has.
  bool has_passed(const Reply& value);

 private:
  StoreResult<TryResult> take_over_expired(const AcquireRequest& request, Lease& lease,
                                           const Reply& seen);
  std::int64_t wall_milliseconds();
};

std::vector<KnownHazard> getset_hazards();

}  // namespace lockbench::redis

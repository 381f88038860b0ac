#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/redis/client/single_node.h"

namespace lockbench::redis {

/// The part that redis-getset and redis-getset-cas share: the lock's value is the time of its
/// expiry, by the clock of the client that wrote it. The key itself never expires.
class GetsetLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override;
  /// DEL, unless this client's expiry has passed by its own clock.
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override;

 protected:
  /// Whether the lock is granted, given what GET saw and what GETSET replaced.
  virtual bool takes_over(const std::string& seen, const std::optional<std::string>& replaced) = 0;

  /// Whether the value is a time that has passed; false for a value that is not a time.
  bool has_passed(std::string_view value);

 private:
  StoreResult<TryResult> take_over_expired(const AcquireRequest& request, Lease& lease,
                                           const std::string& seen);
  std::int64_t wall_milliseconds();
};

}  // namespace lockbench::redis

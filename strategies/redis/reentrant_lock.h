#pragma once

#include <map>
#include <string>

#include "strategies/redis/single_node.h"

namespace lockbench::redis {

/// A lock that its owner may take again: a hash that counts how often (article 004, Redisson). Who
/// the owner is, and how the others learn that it is free, sets the strategies apart.
class ReentrantLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override;
  RenewResult renew(const Lease& lease, Duration ttl) override;

 protected:
  ReleaseResult give_back(const Lease& lease) override;
  void undo(const Lease& lease, const std::stop_token& stop) override;
  std::optional<RenewalProtocol> renewal_protocol() const override;

  /// Whether the releasing script itself tells those who wait.
  virtual bool release_tells() const { return false; }

 private:
  struct Held {
    int count = 0;
    Duration ttl{};
  };

  StoreResult<Reply> release_once(const Lease& lease, Duration ttl, const std::stop_token& stop);

  std::map<std::string, Held> held_;
};

}  // namespace lockbench::redis

#pragma once

#include <map>
#include <string>

#include "strategies/redis/client/single_node.h"

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
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override;
  StoreResult<bool> decline(const Lease& lease, const std::stop_token&) override {
    return freed_by(give_back(lease));
  }
  std::optional<RenewalProtocol> renewal_protocol() const override;

  /// The script does, when the last release has freed the lock.
  bool tells_itself() const override { return true; }

 private:
  struct Held {
    int count = 0;
    Duration ttl{};
  };

  /// It may be counted there once more than it is here.
  void doubt(const Lease& lease);
  /// Takes back what is counted there of a lock that is not held here.
  StoreResult<void> settle_doubts(const Lease& lease, const std::stop_token& stop);
  StoreResult<Reply> release_once(const Lease& lease, Duration ttl, const std::stop_token& stop);

  std::map<std::string, Held> held_;
  std::map<std::string, int> doubts_;  ///< answers that were lost, by key
  Duration latest_ttl_{};              ///< that was asked for, whatever came of it
};

}  // namespace lockbench::redis

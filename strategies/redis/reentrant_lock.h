#pragma once

#include <initializer_list>
#include <map>
#include <string>

#include "strategies/redis/client/single_node.h"

namespace lockbench::redis {

/// A lock that its owner may take again: a hash with a count per owner (Redisson). The
/// strategies differ in who the owner is and how waiting clients learn of a release.
class ReentrantLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override;

 protected:
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override;
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override;
  StoreResult<bool> decline(const Lease& lease, const std::stop_token& stop) override {
    return give_back(lease, stop);
  }
  std::optional<RenewalProtocol> renewal_protocol() const override;

  /// The release script publishes when it frees the lock.
  bool release_notifies() const override { return true; }

  /// Runs one of the lock's scripts.
  virtual StoreResult<Reply> run(const Script& script, std::string_view key,
                                 std::initializer_list<std::string_view> args,
                                 const std::stop_token& stop);
  enum class Released { freed, counted_down, not_held };
  /// Takes one off the count, whatever this client remembers.
  StoreResult<Released> release_once(const Lease& lease, Duration ttl, const std::stop_token& stop);

 private:
  struct Held {
    int count = 0;
    Duration ttl{};
  };

  /// Remembers that the server may count this lock once more than this client.
  void doubt(const Lease& lease);
  /// Releases what the server may still count for a lock that this client does not hold.
  StoreResult<void> settle_doubts(const Lease& lease, const std::stop_token& stop);

  std::map<std::string, Held> held_;
  std::map<std::string, int> doubts_;  ///< lost answers by key
  Duration latest_ttl_{};              ///< of the latest request
};

/// With an owner that is unique among processes, as Redisson's.
class RedissonLock : public ReentrantLock {
 public:
  explicit RedissonLock(const Context& context);

 protected:
  std::string make_token() override { return owner_; }

 private:
  const std::string owner_;
};

}  // namespace lockbench::redis

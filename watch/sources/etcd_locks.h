#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strategies/etcd/client/txn.h"
#include "watch/sighting.h"
#include "watch/sources/lock_state.h"

namespace lockbench::watch {

/// A key and what it has.
struct EtcdEntry {
  std::string name, value;
  std::int64_t created = 0;   ///< the revision in which it was created
  std::int64_t modified = 0;  ///< and last changed
  etcd::LeaseId lease = 0;
};
/// A change of a key: what it has now, or that it is gone.
struct EtcdChange {
  bool deleted = false;
  EtcdEntry entry;  ///< of a deleted key: the name, and the revision as `modified`
};

/// Which lock a key of etcd belongs to.
struct EtcdPlace {
  std::string lock;
  Shape shape = Shape::etcd_key;
  bool shared = false;
};
/// LOCK/LEASE in hexadecimal digits, of etcd's own packages and programs; LOCK/TOKEN with a random
/// one, or LOCK/queue/x/TOKEN, of lockbench; or a key that is a lock by itself. Nothing: it only
/// belongs to a lock.
std::optional<EtcdPlace> etcd_place_of(const EtcdEntry& entry);

/// The locks of etcd as its keys and their changes tell. Plain data, for one thread.
class EtcdLocks {
 public:
  EtcdLocks(std::vector<std::string> patterns, std::size_t most_keys)
      : patterns_(std::move(patterns)), most_(most_keys) {}

  /// A key that is there when the watch begins, or has changed. The lock that it changes; nothing:
  /// none.
  std::optional<std::string> put(const EtcdEntry& entry);
  std::vector<Sighting> begun(TimePoint at) const;

  /// Changes in the order of their revisions: a sighting of each lock that changed, after each
  /// revision.
  std::vector<Sighting> take(const std::vector<EtcdChange>& changes, TimePoint at);

  /// A holder's lease; 0: it has none, or nobody holds the lock.
  etcd::LeaseId lease_of(const std::string& lock) const;
  /// The lease lives for so long.
  void lives(etcd::LeaseId lease, Duration left, TimePoint at);
  void forget_lease(etcd::LeaseId lease) { leases_.erase(lease); }
  /// How the holding that ended at `at` did, by what is known of its lease, which is gone now.
  std::optional<Ending> ending_of(etcd::LeaseId lease, TimePoint at) const;
  /// The state of a lock as it is known; nothing: it is free.
  std::optional<Sighting> state_of(const std::string& lock, TimePoint at) const;
  /// Keys that there was no room for, since the last call.
  std::uint64_t take_unfollowed() { return std::exchange(unfollowed_, 0); }
  std::size_t keys() const { return by_key_.size(); }

 private:
  struct Lock {
    Shape shape = Shape::etcd_key;
    Contenders queue;  ///< by create revision
  };
  struct Place {
    std::string lock;
    std::uint64_t created = 0;
  };

  std::optional<std::string> remove(const std::string& key);
  Sighting sighting(const std::string& name, const Lock& lock, TimePoint at) const;

  const std::vector<std::string> patterns_;
  const std::size_t most_;
  std::unordered_map<std::string, Lock> locks_;
  std::unordered_map<std::string, Place> by_key_;
  std::unordered_map<etcd::LeaseId, SteadyTime> leases_;  ///< when each ends
  std::size_t sweep_at_ = 10'000;                         ///< so many leases
  std::uint64_t unfollowed_ = 0;
};

}  // namespace lockbench::watch

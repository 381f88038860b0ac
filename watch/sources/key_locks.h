#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strategies/etcd/client/connection.h"
#include "watch/sources/keys.h"
#include "watch/sources/lock_state.h"

namespace lockbench::watch {

/// A key with its value and metadata.
struct KeyEntry {
  std::string name, value;
  std::int64_t created = 0;   ///< the create revision
  std::int64_t modified = 0;  ///< the modification revision
  etcd::LeaseId lease = 0;
  /// NATS: when it ends without a change, TimePoint::max(): never. There each key is a lock.
  std::optional<TimePoint> ends{};
};
/// A change or deletion of a key.
struct KeyChange {
  bool deleted = false;
  KeyEntry entry;  ///< of a deleted key: only the name and, as `modified`, the revision
};

/// The lock that a key belongs to.
struct KeyPlace {
  std::string lock;
  Shape shape = Shape::etcd_key;
  bool shared = false;
};
inline std::string etcd_hex(etcd::LeaseId lease) {
  return fmt::format("{:x}", static_cast<std::uint64_t>(lease));
}
/// Whether it is LOCK/part/x/TOKEN or LOCK/part/s/TOKEN, as lockbench's own locks have them.
inline bool is_part_of_lock(const KeyEntry& entry, std::string_view part) {
  const std::string_view name = entry.name;
  const std::size_t at = name.rfind(part);
  if (at == std::string_view::npos || at == 0 || entry.lease == 0) return false;
  const std::string_view rest = name.substr(at + part.size());
  return (rest.starts_with("x/") || rest.starts_with("s/")) && rest.rfind('/') == 1;
}
/// Recognizes LOCK/LEASE (hexadecimal), as etcd's own clients write it; lockbench's LOCK/TOKEN
/// (random) and LOCK/queue/x/TOKEN; any other key is a lock by itself. Nothing for auxiliary keys,
/// such as guards.
inline std::optional<KeyPlace> etcd_place_of(const KeyEntry& entry) {
  const std::string_view name = entry.name;
  if (entry.ends) return KeyPlace{.lock = entry.name, .shape = Shape::token};
  if (is_part_of_lock(entry, "/guard/")) return std::nullopt;
  constexpr std::string_view kQueue = "/queue/";
  if (const std::size_t at = name.rfind(kQueue); is_part_of_lock(entry, kQueue)) {
    const std::string_view rest = name.substr(at + kQueue.size());
    return KeyPlace{.lock = std::string(name.substr(0, at)),
                    .shape = Shape::etcd_queue,
                    .shared = rest.starts_with("s/")};
  }
  const std::size_t slash = name.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? "" : name.substr(slash + 1);
  if (slash > 0 && entry.lease != 0 && (last == etcd_hex(entry.lease) || is_uuid(last))) {
    return KeyPlace{.lock = std::string(name.substr(0, slash)), .shape = Shape::etcd_queue};
  }
  return KeyPlace{.lock = entry.name};
}

/// The state of the locks of etcd or NATS, from keys and their changes. Plain data, for one thread.
class KeyLocks {
 public:
  KeyLocks(const Request& request, std::size_t most_keys)
      : request_({.locks = request.locks, .exclude = request.exclude}), most_(most_keys) {}

  /// Takes a key that was found at the start or has changed at `at`. Returns the lock that it
  /// belongs to; nothing if it is not followed.
  std::optional<std::string> put(const KeyEntry& entry, TimePoint at) {
    const auto place = etcd_place_of(entry);
    if (!place || entry.created <= 0) return std::nullopt;
    if (!is_wanted(request_, place->lock) && !is_wanted(request_, entry.name)) {
      return std::nullopt;
    }
    const auto value = entry.lease == 0 ? read_lock_value(entry.value) : LockValue();
    if (!value) {
      if (no_locks_.size() < kMostNoLocks) no_locks_.push_back(entry.name);
      return remove(entry.name);
    }
    if (!by_key_.contains(entry.name) && by_key_.size() >= most_) {
      ++unfollowed_;
      return std::nullopt;
    }
    const auto created = static_cast<std::uint64_t>(entry.created);
    by_key_[entry.name] = {.lock = place->lock, .created = created, .modified = entry.modified};
    Lock& lock = locks_[place->lock];
    lock.shape = place->shape;
    Contender& contender = lock.queue[created];
    contender.owner = entry.lease != 0 ? etcd_hex(entry.lease) : value->owner;
    contender.about = entry.lease != 0 ? "lease " + contender.owner : "";
    contender.shared = place->shared;
    contender.lease = entry.lease;
    std::optional<TimePoint> end = entry.ends;
    if (value->is_record) {
      lock.shape = Shape::record;
      contender.about = value->owner;
      // As Kubernetes' own clients do, count from the time at which the renewal was seen: the time
      // in the record is of another clock.
      end = std::min(end.value_or(TimePoint::max()),
                     value->lasts ? at + *value->lasts : TimePoint::max());
    }
    set_end(place->lock, lock, end);
    return place->lock;
  }
  std::vector<Sighting> begun(TimePoint at) const {
    std::vector<Sighting> all;
    all.reserve(locks_.size());
    for (const auto& [name, lock] : locks_) all.push_back(sighting(name, lock, at));
    return all;
  }

  /// Takes changes in the order of their revisions. Returns, for each revision, a sighting of each
  /// lock that changed.
  std::vector<Sighting> take(const std::vector<KeyChange>& changes, TimePoint at) {
    std::vector<Sighting> seen;
    for (std::size_t i = 0; i < changes.size();) {
      // All changes of one transaction have the same revision and count as one.
      std::map<std::string, std::uint64_t> touched;
      const std::int64_t revision = changes[i].entry.modified;
      for (; i < changes.size() && changes[i].entry.modified == revision; ++i) {
        const auto& change = changes[i];
        const auto lock = change.deleted ? remove(change.entry.name) : put(change.entry, at);
        if (lock) ++touched[*lock];
      }
      for (const auto& [name, count] : touched) {
        const auto lock = locks_.find(name);
        seen.push_back(sighting(name, lock->second, at));
        seen.back().changes = count;
        if (!lock->second.queue.empty()) continue;
        set_end(name, lock->second, std::nullopt);
        locks_.erase(lock);
      }
    }
    return seen;
  }

  /// Whether expired() has something to tell.
  bool has_expired(TimePoint at) const { return !ends_.empty() && ends_.begin()->first <= at; }
  /// Sightings of locks that were not renewed in time. Each is told once; its key stays.
  std::vector<Sighting> expired(TimePoint at) {
    std::vector<Sighting> seen;
    while (has_expired(at)) {
      const std::string name = ends_.begin()->second;
      ends_.erase(ends_.begin());
      // It ends without a change of the key.
      seen.push_back(sighting(name, locks_.at(name), at));
      seen.back().ended = Ending::expired;
    }
    return seen;
  }

  /// The holder's lease; 0 if it has none or the lock is free.
  etcd::LeaseId lease_of(const std::string& name) const {
    const auto lock = locks_.find(name);
    if (lock == locks_.end() || lock->second.queue.empty()) return 0;
    return lock->second.queue.begin()->second.lease;
  }
  /// Notes that the lease had `left` to live at `at`, in this term of the Raft leader.
  void lives(etcd::LeaseId lease, Duration left, TimePoint at, std::uint64_t term = 0) {
    // etcd rounds down to whole seconds.
    const SteadyTime end = SteadyTime::between(at + left, at + left + std::chrono::seconds(1));
    // Sweep out dead leases.
    if (leases_.size() >= sweep_at_) {
      std::erase_if(leases_, [&](const auto& one) { return one.second.end.latest < at; });
      sweep_at_ = std::max(sweep_at_, 2 * leases_.size());
    }
    const auto [known, added] = leases_.try_emplace(lease, Lease{.end = end, .term = term});
    if (added) return;
    Lease& old = known->second;
    if (end.earliest >= old.end.latest) {
      // A new leader gives each lease its whole TTL again, whether or not its client lives.
      old = {.end = end, .term = term, .by_leader = term != old.term};
    } else {
      // It may be the same end, rounded differently: not a renewal.
      old.end.narrow(end);
    }
  }
  void forget_lease(etcd::LeaseId lease) { leases_.erase(lease); }
  /// How the holding ended, given that its lease is gone by `at`; nothing if unknown.
  std::optional<Ending> ending_of(etcd::LeaseId lease, TimePoint at) const {
    const auto end = leases_.find(lease);
    if (end == leases_.end()) return std::nullopt;
    if (at < end->second.end.earliest) return Ending::released;
    if (at >= end->second.end.latest) return Ending::session_lost;
    return std::nullopt;
  }
  /// The known state of a lock; nothing if it is free.
  std::optional<Sighting> state_of(const std::string& name, TimePoint at) const {
    const auto lock = locks_.find(name);
    if (lock == locks_.end()) return std::nullopt;
    return sighting(name, lock->second, at);
  }
  /// Number of keys without room since the last call.
  std::uint64_t take_unfollowed() { return std::exchange(unfollowed_, 0); }
  /// Keys whose value is no lock's, since the last call.
  std::vector<std::string> take_no_locks() { return std::exchange(no_locks_, {}); }
  std::size_t keys() const { return by_key_.size(); }
  /// The revision of a key's latest change; 0 if the key is not there.
  std::int64_t modified(const std::string& key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? 0 : found->second.modified;
  }

 private:
  struct Lock {
    Shape shape = Shape::etcd_key;
    Contenders queue;                        ///< by create revision
    std::optional<TimePoint> lasts_until{};  ///< a record, or NATS: if it is not renewed
  };
  struct Lease {
    SteadyTime end;
    std::uint64_t term = 0;
    bool by_leader = false;  ///< the end was moved when the leader changed
  };
  struct Place {
    std::string lock;
    std::uint64_t created = 0;
    std::int64_t modified = 0;
  };

  void set_end(const std::string& name, Lock& lock, std::optional<TimePoint> end) {
    if (lock.lasts_until) ends_.erase({*lock.lasts_until, name});
    lock.lasts_until = end;
    if (end && *end != TimePoint::max()) ends_.insert({*end, name});
  }
  std::optional<std::string> remove(const std::string& key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return std::nullopt;
    const Place place = std::move(found->second);
    by_key_.erase(found);
    const auto lock = locks_.find(place.lock);
    if (lock == locks_.end()) return std::nullopt;
    lock->second.queue.erase(place.created);
    return place.lock;
  }
  Sighting sighting(const std::string& name, const Lock& lock, TimePoint at) const {
    Sighting seen = queued_lock(name, at, lock.shape, lock.queue);
    if (lock.lasts_until && !lock.queue.empty()) {
      const bool is_record = lock.shape == Shape::record,
                 ends = lock.lasts_until != TimePoint::max();
      const bool given_back = is_record && lock.queue.begin()->second.owner.empty();
      const bool is_free = given_back || at >= *lock.lasts_until;
      if (is_free) seen.holders.clear();
      if (!is_free && ends) seen.ttl_left = *lock.lasts_until - at;
      seen.no_ttl = !is_record && !ends;
      // The key stays, so its number is no fence.
      seen.fence.reset();
    } else if (!lock.queue.empty()) {
      const etcd::LeaseId lease = lock.queue.begin()->second.lease;
      seen.no_ttl = lease == 0;
      const auto end = leases_.find(lease);
      // During the lease's last second its remaining time is unknown.
      if (end != leases_.end() && end->second.end.told > at) {
        seen.ttl_left = end->second.end.told - at;
        seen.extended_by_store = end->second.by_leader;
      }
    }
    // Clients that wait for a single key leave no trace in etcd.
    if (lock.shape != Shape::etcd_queue) {
      seen.waiting.reset();
      seen.waiters.reset();
    }
    return seen;
  }

  static constexpr std::size_t kMostNoLocks = 1000;

  const Request request_;
  const std::size_t most_;
  std::unordered_map<std::string, Lock> locks_;
  std::unordered_map<std::string, Place> by_key_;
  std::unordered_map<etcd::LeaseId, Lease> leases_;
  std::size_t sweep_at_ = 10'000;  ///< number of leases
  std::uint64_t unfollowed_ = 0;
  std::set<std::pair<TimePoint, std::string>> ends_;  ///< of locks, by name
  std::vector<std::string> no_locks_;
};

}  // namespace lockbench::watch

#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strategies/nats/client/bucket.h"
#include "watch/sources/keys.h"
#include "watch/sources/lock_state.h"

namespace lockbench::watch {

/// The buckets of NATS in patterns for BUCKET/KEY. Other patterns are for other servers of the same
/// watch.
inline std::set<std::string> buckets_in(const std::vector<std::string>& patterns) {
  constexpr std::string_view kAllowed =
      "-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::set<std::string> buckets;
  for (const std::string& pattern : patterns) {
    const std::size_t end = std::min(pattern.find_first_not_of(kAllowed), pattern.size());
    if (end > 0 && pattern.substr(end, 1) == "/") buckets.insert(pattern.substr(0, end));
  }
  return buckets;
}

/// The state of NATS's locks. Each key is a lock of whom its value names: until a message marks it
/// as deleted, or its bucket's TTL (the stream's max_age) is over, of which NATS sends nothing.
/// Plain data, for one thread.
class NatsLocks {
 public:
  /// Takes a key's latest message, stored at that time. `value`: nothing if it marks the key as
  /// deleted, or is no lock's. `ttl`: of the bucket; Duration::max(): none. Returns the lock's new
  /// state; nothing if it was free and still is.
  std::optional<Sighting> take(const std::string& name, const std::optional<LockValue>& value,
                               TimePoint stored_at, Duration ttl, TimePoint now) {
    const bool was_held = forget(name);
    Sighting seen = free_lock(name, now);
    if (value) {
      const Lock lock{.stored_at = stored_at, .lasts = value->lasts.value_or(Duration::max())};
      const TimePoint end = end_of(lock, ttl);
      seen.shape = value->is_record ? Shape::record : Shape::token;
      seen.holders.push_back(
          {.owner = value->owner, .about = value->is_record ? value->owner : ""});
      seen.no_ttl = !value->is_record && end == TimePoint::max();
      hold_until(seen, end);
      if (!seen.holders.empty()) keep(name, lock, end);
    }
    if (!seen.holders.empty()) return seen;
    // Until the server removed the key, its holder could release it.
    seen.ended = Ending::released;
    return was_held ? std::optional(std::move(seen)) : std::nullopt;
  }

  /// A lock whose TTL is over, of which the server would have said it if it were not; nothing if
  /// there is none.
  std::optional<std::string> due(TimePoint now) const {
    if (due_.empty() || due_.begin()->first > now) return std::nullopt;
    return due_.begin()->second;
  }
  /// Ends a lock that is due. Nothing if it is not any more: its bucket has a longer TTL now.
  std::optional<Sighting> expire(const std::string& name, Duration ttl, TimePoint now) {
    const Lock lock = locks_.at(name);
    forget(name);
    if (const TimePoint end = end_of(lock, ttl); end > now) {
      keep(name, lock, end);
      return std::nullopt;
    }
    Sighting seen = free_lock(name, now);
    seen.ended = Ending::expired;
    return seen;
  }

  /// Of the message that holds the lock; nothing if it is free.
  std::optional<TimePoint> stored_at(const std::string& name) const {
    const auto found = locks_.find(name);
    return found == locks_.end() ? std::nullopt : std::optional(found->second.stored_at);
  }
  std::size_t size() const { return locks_.size(); }

 private:
  struct Lock {
    TimePoint stored_at{};
    Duration lasts{};  ///< as a record says
    TimePoint due_at = TimePoint::max();
  };

  static TimePoint end_of(const Lock& lock, Duration ttl) {
    const Duration lasts = std::min(ttl, lock.lasts);
    return lasts == Duration::max() ? TimePoint::max() : lock.stored_at + lasts;
  }

  void keep(const std::string& name, Lock lock, TimePoint end) {
    if (end != TimePoint::max()) {
      lock.due_at = end + nats::kKeptLonger;
      due_.insert({lock.due_at, name});
    }
    locks_[name] = lock;
  }
  /// Whether it was there.
  bool forget(const std::string& name) {
    const auto found = locks_.find(name);
    if (found == locks_.end()) return false;
    due_.erase({found->second.due_at, name});
    locks_.erase(found);
    return true;
  }

  std::unordered_map<std::string, Lock> locks_;  ///< that are held
  std::set<std::pair<TimePoint, std::string>> due_;
};

}  // namespace lockbench::watch

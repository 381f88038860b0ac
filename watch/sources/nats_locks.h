#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strategies/nats/client/bucket.h"
#include "watch/sources/keys.h"
#include "watch/sources/lock_state.h"

namespace lockbench::watch {

/// The buckets that patterns for BUCKET/KEY can match.
class NatsBuckets {
 public:
  /// Without patterns: all buckets.
  explicit NatsBuckets(const std::vector<std::string>& patterns) {
    if (patterns.empty()) beginnings_.insert("");
    for (const std::string& pattern : patterns) {
      const std::string prefix = prefix_of(pattern);
      const std::size_t slash = prefix.find('/');
      const std::string name = prefix.substr(0, slash);
      // Other patterns are for other servers of the same watch.
      if (!may_be_named(name)) continue;
      if (slash != std::string::npos && !name.empty()) named_.insert(name);
      if (slash == std::string::npos && prefix.size() < pattern.size()) beginnings_.insert(name);
    }
  }
  bool empty() const { return named_.empty() && beginnings_.empty(); }
  const std::set<std::string>& named() const { return named_; }
  /// Whether it takes a list of all buckets to find them.
  bool need_a_list() const { return !beginnings_.empty(); }
  bool have(std::string_view bucket) const {
    return may_be_named(bucket) && std::ranges::any_of(beginnings_, [&](const auto& one) {
             return bucket.starts_with(one);
           });
  }

 private:
  static bool may_be_named(std::string_view bucket) {
    return std::ranges::all_of(bucket, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_';
    });
  }

  std::set<std::string> named_, beginnings_;
};

/// A message of a bucket's stream: the latest state of a key.
struct NatsMessage {
  std::string bucket, key, value;
  std::uint64_t revision = 0;  ///< its number in the stream
  TimePoint stored_at{};
  bool deleted = false;  ///< it marks the key as deleted
  bool old = false;      ///< stored before the watch saw the bucket
};

/// The state of NATS's locks. Each key is a lock, BUCKET/KEY, of whom its value names: until a
/// message marks it as deleted, or its bucket's TTL (the stream's max_age) is over, of which NATS
/// sends nothing. Plain data, for one thread.
class NatsLocks {
 public:
  explicit NatsLocks(const Request& request)
      : request_({.locks = request.locks, .exclude = request.exclude}), most_(request.most_locks) {}

  /// Sets a bucket's TTL, at first before its messages are taken; Duration::max(): none.
  void keep(const std::string& bucket, Duration ttl) {
    if (std::exchange(buckets_[bucket].ttl, ttl) == ttl) return;
    for (auto& [name, lock] : locks_) {
      if (lock.bucket == bucket) set_end(name, lock);
    }
  }

  /// Why a message changes no lock.
  enum class NoChange { not_followed, no_lock, no_room };
  /// Takes a message, in the order in which the server sends them. Returns the lock's new state.
  tl::expected<Sighting, NoChange> take(const NatsMessage& told, TimePoint now) {
    Bucket& bucket = buckets_[told.bucket];
    note_skipped(bucket, told);
    const std::string name = told.bucket + "/" + told.key;
    if (!is_wanted(request_, name)) return tl::unexpected(NoChange::not_followed);
    const auto known = locks_.find(name);
    const bool was_held = known != locks_.end();
    // While a consumer begins, a server may send a message twice.
    if (was_held && told.revision <= known->second.revision) {
      return tl::unexpected(NoChange::not_followed);
    }
    const auto value = told.deleted ? std::nullopt : read_lock_value(told.value);
    if (!value && !was_held) {
      return tl::unexpected(told.deleted ? NoChange::not_followed : NoChange::no_lock);
    }
    if (!was_held && locks_.size() >= most_) return tl::unexpected(NoChange::no_room);
    Lock& lock = locks_[name];
    std::optional<Ending> ended;
    // Until it was removed, its holder could still release it.
    if (was_held && (!value || (value->is_record && value->owner.empty()))) {
      ended = Ending::released;
    } else if (was_held && value->owner != lock.holder.owner && now >= lock.ends_at) {
      ended = Ending::expired;
    }
    Sighting seen = free_lock(name, now, lock.shape);
    // A new holder, and before it perhaps a release that was not sent.
    const bool is_new = value && (!was_held || value->owner != lock.holder.owner);
    seen.changes = told.old ? 0 : is_new && was_held && lock.skipped < bucket.skipped ? 2 : 1;
    if (value) {
      if (is_new) lock.fence = told.revision;
      write(name, lock, told, *value);
      lock.skipped = bucket.skipped;
      show(seen, lock);
    } else {
      forget(name, lock);
    }
    seen.ended = ended;
    return seen;
  }

  /// A lock whose TTL is over, and of which the server would have said it if it were not; nothing
  /// if there is none.
  std::optional<std::string> due(TimePoint now) const {
    if (ends_.empty() || ends_.begin()->first > now) return std::nullopt;
    return ends_.begin()->second;
  }
  /// Ends a lock that is due. Nothing if nobody held it.
  std::optional<Sighting> expire(const std::string& name, TimePoint now) {
    const auto lock = locks_.find(name);
    if (lock == locks_.end()) return std::nullopt;
    Sighting seen = free_lock(name, now, lock->second.shape);
    seen.ended = Ending::expired;
    const bool named_nobody = seen.shape == Shape::record && lock->second.holder.owner.empty();
    forget(name, lock->second);
    return named_nobody ? std::nullopt : std::optional(std::move(seen));
  }
  /// Messages that were overwritten before the server sent them, since the last call.
  std::uint64_t take_skipped() { return std::exchange(skipped_, 0); }

 private:
  struct Bucket {
    Duration ttl = Duration::max();
    std::uint64_t latest = 0;   ///< the number of its latest message; 0: all were old
    std::uint64_t skipped = 0;  ///< messages that were not sent
  };
  struct Lock {
    Party holder;
    std::string bucket;
    Shape shape = Shape::token;
    std::uint64_t fence = 0;     ///< the revision of the grant; of an old lock, of what was seen
    std::uint64_t revision = 0;  ///< the latest
    std::uint64_t skipped = 0;   ///< in its bucket, at its latest message
    TimePoint stored_at{};
    Duration lasts = Duration::max();  ///< as a record says
    TimePoint ends_at = TimePoint::max(), due_at = TimePoint::max();
  };

  /// A stream keeps the latest message of a key only, so it sends no other.
  void note_skipped(Bucket& bucket, const NatsMessage& told) {
    if (told.old || told.revision <= bucket.latest) return;
    const std::uint64_t skipped = bucket.latest == 0 ? 0 : told.revision - bucket.latest - 1;
    bucket.skipped += skipped;
    skipped_ += skipped;
    bucket.latest = told.revision;
  }

  void write(const std::string& name, Lock& lock, const NatsMessage& told, const LockValue& value) {
    lock.holder.owner = value.owner;
    lock.holder.about = value.is_record ? value.owner : "";
    lock.bucket = told.bucket;
    lock.shape = value.is_record ? Shape::record : Shape::token;
    lock.revision = told.revision;
    lock.stored_at = told.stored_at;
    lock.lasts = value.lasts.value_or(Duration::max());
    set_end(name, lock);
  }

  void set_end(const std::string& name, Lock& lock) {
    ends_.erase({lock.due_at, name});
    const Duration kept = buckets_[lock.bucket].ttl, lasts = std::min(kept, lock.lasts);
    lock.ends_at = lock.due_at = TimePoint::max();
    if (lasts == Duration::max()) return;
    lock.ends_at = lock.stored_at + lasts;
    lock.due_at = lock.ends_at;
    if (lasts == kept) lock.due_at += nats::kKeptLonger;
    ends_.insert({lock.due_at, name});
  }

  void forget(const std::string& name, const Lock& lock) {
    ends_.erase({lock.due_at, name});
    locks_.erase(name);
  }

  static void show(Sighting& seen, const Lock& lock) {
    seen.shape = lock.shape;
    seen.holders = {lock.holder};
    hold_until(seen, lock.ends_at);
    if (lock.shape == Shape::record) return;  // its key stays, so its number is no fence
    seen.fence = lock.fence;
    seen.no_ttl = lock.ends_at == TimePoint::max();
  }

  const Request request_;
  const std::uint64_t most_;
  std::map<std::string, Bucket> buckets_;
  std::unordered_map<std::string, Lock> locks_;
  std::set<std::pair<TimePoint, std::string>> ends_;  ///< when each lock is due
  std::uint64_t skipped_ = 0;
};

}  // namespace lockbench::watch

#include "watch/sources/etcd_locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "watch/sources/patterns.h"

namespace lockbench::watch {
namespace {

constexpr std::size_t kLongestValue = 256;

std::string hex(etcd::LeaseId lease) {
  return fmt::format("{:x}", static_cast<std::uint64_t>(lease));
}

}  // namespace

std::optional<EtcdPlace> etcd_place_of(const EtcdEntry& entry) {
  const std::string_view name = entry.name;
  if (name.find("/guard/") != std::string_view::npos) return std::nullopt;
  constexpr std::string_view kQueue = "/queue/";
  if (const std::size_t at = name.find(kQueue); at != std::string_view::npos && at > 0) {
    const std::string_view rest = name.substr(at + kQueue.size());
    return EtcdPlace{.lock = std::string(name.substr(0, at)),
                     .shape = Shape::etcd_queue,
                     .shared = rest.starts_with("s/")};
  }
  const std::size_t slash = name.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? "" : name.substr(slash + 1);
  if (slash > 0 && entry.lease != 0 && (last == hex(entry.lease) || is_uuid(last))) {
    return EtcdPlace{.lock = std::string(name.substr(0, slash)), .shape = Shape::etcd_queue};
  }
  return EtcdPlace{.lock = entry.name};
}

std::optional<std::string> EtcdLocks::put(const EtcdEntry& entry) {
  const auto place = etcd_place_of(entry);
  if (!place || entry.created <= 0) return std::nullopt;
  if (!matches_any(patterns_, place->lock) && !matches_any(patterns_, entry.name)) {
    return std::nullopt;
  }
  if (!by_key_.contains(entry.name) && by_key_.size() >= most_) {
    ++unfollowed_;
    return std::nullopt;
  }
  const auto created = static_cast<std::uint64_t>(entry.created);
  by_key_[entry.name] = {.lock = place->lock, .created = created};
  Lock& lock = locks_[place->lock];
  lock.shape = place->shape;
  lock.queue[created] = {
      .entry = entry.name,
      .owner = entry.lease != 0 ? hex(entry.lease) : entry.value.substr(0, kLongestValue),
      .shared = place->shared,
      .lease = entry.lease};
  return place->lock;
}

std::optional<std::string> EtcdLocks::remove(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  const Place place = std::move(found->second);
  by_key_.erase(found);
  const auto lock = locks_.find(place.lock);
  if (lock == locks_.end()) return std::nullopt;
  lock->second.queue.erase(place.created);
  return place.lock;
}

std::vector<Sighting> EtcdLocks::begun(TimePoint at) const {
  std::vector<Sighting> all;
  all.reserve(locks_.size());
  for (const auto& [name, lock] : locks_) all.push_back(sighting(name, lock, at));
  return all;
}

std::vector<Sighting> EtcdLocks::take(const std::vector<EtcdChange>& changes, TimePoint at) {
  std::vector<Sighting> seen;
  for (std::size_t i = 0; i < changes.size();) {
    // What one transaction did is one change.
    std::map<std::string, std::uint64_t> touched;
    const std::int64_t revision = changes[i].entry.modified;
    for (; i < changes.size() && changes[i].entry.modified == revision; ++i) {
      const auto& change = changes[i];
      const auto lock = change.deleted ? remove(change.entry.name) : put(change.entry);
      if (lock) ++touched[*lock];
    }
    for (const auto& [name, count] : touched) {
      const auto lock = locks_.find(name);
      seen.push_back(sighting(name, lock->second, at));
      seen.back().changes = count;
      if (lock->second.queue.empty()) locks_.erase(lock);
    }
  }
  return seen;
}

Sighting EtcdLocks::sighting(const std::string& name, const Lock& lock, TimePoint at) const {
  Sighting seen = queued_lock(name, at, lock.shape, lock.queue);
  if (!lock.queue.empty()) {
    const etcd::LeaseId lease = lock.queue.begin()->second.lease;
    seen.no_ttl = lease == 0;
    const auto end = leases_.find(lease);
    // In its last second, how much is left is not known.
    if (end != leases_.end() && end->second.told > at) seen.ttl_left = end->second.told - at;
  }
  // Who waits for a key that is the lock itself leaves no trace.
  if (lock.shape != Shape::etcd_queue) {
    seen.waiting.reset();
    seen.waiters.reset();
  }
  return seen;
}

etcd::LeaseId EtcdLocks::lease_of(const std::string& name) const {
  const auto lock = locks_.find(name);
  if (lock == locks_.end() || lock->second.queue.empty()) return 0;
  return lock->second.queue.begin()->second.lease;
}

void EtcdLocks::lives(etcd::LeaseId lease, Duration left, TimePoint at) {
  // In whole seconds, rounded down.
  const SteadyTime end = SteadyTime::between(at + left, at + left + std::chrono::seconds(1));
  // Sessions come and go.
  if (leases_.size() >= sweep_at_) {
    std::erase_if(leases_, [&](const auto& one) { return one.second.latest < at; });
    sweep_at_ = std::max(sweep_at_, 2 * leases_.size());
  }
  const auto [known, added] = leases_.try_emplace(lease, end);
  if (added) return;
  if (end.earliest >= known->second.latest) {
    known->second = end;
  } else {
    // What was rounded is not taken for a renewal.
    known->second.narrow(end);
  }
}

std::optional<Ending> EtcdLocks::ending_of(etcd::LeaseId lease, TimePoint at) const {
  const auto end = leases_.find(lease);
  if (end == leases_.end()) return std::nullopt;
  if (at < end->second.earliest) return Ending::released;
  if (at >= end->second.latest) return Ending::session_lost;
  return std::nullopt;
}

std::optional<Sighting> EtcdLocks::state_of(const std::string& name, TimePoint at) const {
  const auto lock = locks_.find(name);
  if (lock == locks_.end()) return std::nullopt;
  return sighting(name, lock->second, at);
}

}  // namespace lockbench::watch

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strategies/duration.h"
#include "watch/source.h"

// Helpers to build the state of a lock.
namespace lockbench::watch {

/// A holder or waiter that has its own entry (key or node) in the store.
struct Contender : Party {
  std::string node;        ///< ZooKeeper: name of its node
  std::int64_t lease = 0;  ///< etcd: lease of its key; 0 if it has none
};
/// By the sequence number that the store assigned: the order of the queue.
using Contenders = std::map<std::uint64_t, Contender>;

inline Sighting free_lock(std::string name, TimePoint at, Shape shape = Shape::unknown) {
  Sighting seen;
  seen.lock = std::move(name);
  seen.at = at;
  seen.shape = shape;
  return seen;
}

/// The lowest number holds the lock and is its fence. Adjacent shared requests at the head of the
/// queue hold it together.
inline Sighting queued_lock(std::string name, TimePoint at, Shape shape, const Contenders& queue) {
  Sighting seen = free_lock(std::move(name), at, shape);
  std::vector<Party> waiting;
  for (const auto& [number, contender] : queue) {
    const bool holds = waiting.empty() &&
                       (seen.holders.empty() || (contender.shared && seen.holders.front().shared));
    if (seen.holders.empty()) seen.fence = number;
    (holds ? seen.holders : waiting).push_back(static_cast<const Party&>(contender));
  }
  seen.waiters = waiting.size();
  seen.waiting = std::move(waiting);
  return seen;
}

/// A point in time that each look reports slightly differently, as looks take time and some stores
/// round. Kept as bounds.
struct SteadyTime {
  /// Default: never.
  TimePoint earliest = TimePoint::max(), latest = TimePoint::max();
  TimePoint told = TimePoint::max();  ///< the value used in sightings

  static SteadyTime between(TimePoint earliest, TimePoint latest) {
    return {.earliest = earliest, .latest = latest, .told = earliest};
  }
  /// Whether both may be the same point in time, so that nothing has changed.
  bool may_be(const SteadyTime& before) const {
    return earliest <= before.latest && before.earliest <= latest;
  }
  /// Narrows the bounds by another report of the same time.
  void narrow(const SteadyTime& other) {
    earliest = std::max(earliest, other.earliest);
    latest = std::min(latest, other.latest);
  }
};

}  // namespace lockbench::watch

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strategies/duration.h"
#include "watch/source.h"

// States of locks as sources tell them.
namespace lockbench::watch {

/// One that holds a lock or stands in the queue for it, by an entry of its own in the store.
struct Contender : Party {
  std::string node;        ///< the name of its entry, in ZooKeeper
  std::int64_t lease = 0;  ///< of its entry, in etcd; 0: it has none
};
/// By the number that the store gave to each: its order in the queue.
using Contenders = std::map<std::uint64_t, Contender>;

/// A lock that nobody holds.
inline Sighting free_lock(std::string name, TimePoint at, Shape shape = Shape::unknown) {
  Sighting seen;
  seen.lock = std::move(name);
  seen.at = at;
  seen.shape = shape;
  return seen;
}

/// The lowest number holds the lock, and is its fence. Shared requests at the head of the queue
/// hold it together.
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

/// A time that a store tells again at each look, a little differently, as a look takes a while and
/// some stores round. It lies between two times.
struct SteadyTime {
  /// By default: never.
  TimePoint earliest = TimePoint::max(), latest = TimePoint::max();
  TimePoint told = TimePoint::max();  ///< in sightings

  static SteadyTime between(TimePoint earliest, TimePoint latest) {
    return {.earliest = earliest, .latest = latest, .told = earliest};
  }
  /// Whether the look before may have meant the same time: then nothing has changed.
  bool may_be(const SteadyTime& before) const {
    return earliest <= before.latest && before.earliest <= latest;
  }
  /// `other` told the same time.
  void narrow(const SteadyTime& other) {
    earliest = std::max(earliest, other.earliest);
    latest = std::min(latest, other.latest);
  }
};

}  // namespace lockbench::watch

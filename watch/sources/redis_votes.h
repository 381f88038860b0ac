#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "watch/sighting.h"

namespace lockbench::watch {

/// What several independent nodes say of their locks, as one: a lock is held by the client
/// that has a majority. Plain data, for one thread.
class Votes {
 public:
  Votes(std::size_t nodes, std::size_t most_locks) : nodes_(nodes), most_(most_locks) {}

  /// A node's sighting; what follows for the lock, if anything has changed. A minority is told only
  /// by settled(), as votes come and go one after the other.
  std::optional<Sighting> seen(std::size_t node, const Sighting& sighting);
  /// Locks that have had some votes, and no majority, for a while.
  std::vector<Sighting> settled(TimePoint now);
  /// Nothing is known any more of what the node holds.
  void forget(std::size_t node);
  std::size_t majority() const { return nodes_ / 2 + 1; }
  std::size_t size() const { return locks_.size(); }

 private:
  struct Vote {
    std::string owner;  ///< empty: none
    std::optional<TimePoint> ends{};
  };
  struct Lock {
    std::vector<Vote> votes;
    std::string holder;  ///< with a majority; empty: none
    std::string left;    ///< has just given it up; the last nodes to tell of its grant may still do
    std::optional<TimePoint> ends{};
    TimePoint minority_since = TimePoint::max();
  };

  std::optional<TimePoint> end_of(const Lock& lock, const std::string& owner) const;

  const std::size_t nodes_, most_;
  std::unordered_map<std::string, Lock> locks_;
};

}  // namespace lockbench::watch

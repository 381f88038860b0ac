#pragma once

#include <cstddef>
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
  Votes(std::size_t nodes, std::size_t most_locks)
      : nodes_(nodes), most_(most_locks), sight_(nodes, Sight::some) {}

  /// A node's sighting; what follows for the lock, if anything has changed. A minority is told only
  /// by settled(), as votes come and go one after the other.
  std::optional<Sighting> seen(std::size_t node, const Sighting& sighting);
  /// Locks that have had some votes, and no majority, for a while; again and again while that
  /// lasts. Not those of which nodes that are not wholly seen may have the votes that are lacking.
  std::vector<Sighting> settled(TimePoint now);

  /// Nothing is known any more of what the node holds.
  void blind(std::size_t node);
  /// The node is seen again, and begins to tell what it holds.
  void sees(std::size_t node) { sight_[node] = Sight::some; }
  /// The node has told all that it holds.
  void told_all(std::size_t node) { sight_[node] = Sight::all; }
  /// Fewer nodes than a majority are seen.
  bool is_blind() const;
  std::size_t size() const { return locks_.size(); }

 private:
  /// How much of what a node holds is known.
  enum class Sight { none, some, all };
  struct Vote {
    std::string owner;  ///< empty: none
    std::optional<TimePoint> ends{};
  };
  struct Lock {
    std::vector<Vote> votes;
    std::string holder;  ///< with a majority; empty: none
    std::string left;    ///< has just given it up; the last nodes to tell of its grant may still do
    std::optional<TimePoint> ends{};
    TimePoint minority_since = TimePoint::max();  ///< or since settled() looked at it
    bool minority_told = false;
  };

  std::size_t majority() const { return nodes_ / 2 + 1; }
  /// Whether who has so many votes may have a majority, with nodes that are not wholly seen.
  bool may_hold(std::size_t votes) const;
  std::optional<TimePoint> end_of(const Lock& lock, const std::string& owner) const;

  const std::size_t nodes_, most_;
  std::vector<Sight> sight_;  ///< of each node
  std::unordered_map<std::string, Lock> locks_;
};

}  // namespace lockbench::watch

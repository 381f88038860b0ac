#pragma once

#include <fmt/format.h>

#include <boost/regex.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "watch/sources/lock_state.h"
#include "watch/sources/patterns.h"

namespace lockbench::watch {

/// The name of a sequence node below a lock's node, in the form of any known library.
struct SequenceNode {
  std::string maker;  ///< a UUID; empty: the name does not tell
  std::uint64_t sequence = 0;
  bool shared = false;  ///< of a read lock
};
/// Reads Curator's "_c_<uuid>-lock-0000000001", kazoo's "<uuid>__lock__0000000001" and plain
/// "lock-0000000001"; nothing for any other name. Takes any bytes.
inline std::optional<SequenceNode> read_sequence_node(const std::string& name) {
  // ZooKeeper appends the ten digits.
  static const boost::regex kForm(
      fmt::format("(?:(?:_c_)?({})-?)?(?:(__READ__|__rlock__|read-)|.*)([0-9]{{10}})", kUuid));
  boost::smatch found;
  if (!boost::regex_match(name, found, kForm)) return std::nullopt;
  return SequenceNode{
      .maker = found[1].str(), .sequence = std::stoull(found[3].str()), .shared = found[2].matched};
}

/// The locks of ZooKeeper as its nodes tell: below a lock's node each contender has a sequence
/// node, and the lowest number holds it; or one ephemeral node is the lock. Plain data, for one
/// thread.
class ZookeeperLocks {
 public:
  explicit ZookeeperLocks(std::size_t most_nodes) : most_(most_nodes) {}

  /// What is to be asked next, after the children of a node were listed.
  struct Listed {
    std::vector<std::string> contenders;  ///< new sequence nodes: who owns them?
    std::vector<std::string> others;      ///< new children of another kind: they may be locks
  };
  Listed listed(const std::string& path, const std::vector<std::string>& children) {
    Listed result;
    if (!nodes_.contains(path) && nodes_.size() >= most_) {
      ++unfollowed_;
      return result;
    }
    Node& node = nodes_[path];
    std::set<std::uint64_t> present;
    std::set<std::string> others;
    std::optional<std::uint64_t> newest = node.newest;
    std::uint64_t fresh = 0;
    for (const std::string& name : children) {
      const bool known_other = node.others.contains(name);
      const auto sequence = read_sequence_node(name);
      if (known_other || !sequence) {
        others.insert(name);
        if (!known_other) result.others.push_back(name);
        continue;
      }
      present.insert(sequence->sequence);
      const auto [place, added] = node.queue.try_emplace(sequence->sequence);
      if (!added) continue;
      place->second.node = name;
      place->second.owner = sequence->maker.empty() ? name : sequence->maker;
      place->second.shared = sequence->shared;
      result.contenders.push_back(name);
      ++node.changes;
      if (!node.newest || sequence->sequence > *node.newest) ++fresh;
      if (!newest || sequence->sequence > *newest) newest = sequence->sequence;
    }
    // The server counts the children that were ever made. Other nodes may end in any number.
    if (node.was_lock && node.newest && newest && *newest > *node.newest) {
      const std::uint64_t made = *newest - *node.newest;
      if (made > fresh) missed_ += made - fresh;
    }
    node.newest = newest;
    node.changes += std::erase_if(
        node.queue, [&](const auto& contender) { return !present.contains(contender.first); });
    node.others = std::move(others);
    return result;
  }
  /// A new contender's session; 0: it has none, so it is no contender. `made_at`: if it was there
  /// when the watch began.
  void owned(const std::string& path, const std::string& name, std::int64_t session,
             std::optional<TimePoint> made_at) {
    const auto node = nodes_.find(path);
    const auto sequence = read_sequence_node(name);
    if (node == nodes_.end() || !sequence) return;
    const auto place = node->second.queue.find(sequence->sequence);
    if (place == node->second.queue.end() || place->second.node != name) return;
    if (session == 0) {
      node->second.queue.erase(place);
      node->second.others.insert(name);
      if (node->second.changes > 0) --node->second.changes;
      return;
    }
    place->second.owner = fmt::format("{:x}", static_cast<std::uint64_t>(session));
    place->second.since = made_at;
  }
  /// What follows from listed() and owned(): the lock's state, and before it that it was free if
  /// its holder gave it back and took it again; nothing: the node is no lock, or nothing has
  /// changed. `initial`: it was there when the watch began.
  std::vector<Sighting> settle(const std::string& path, TimePoint at, bool initial) {
    const auto found = nodes_.find(path);
    if (found == nodes_.end()) return {};
    Node& node = found->second;
    const std::uint64_t changes = std::exchange(node.changes, 0);
    if (changes == 0 || (node.queue.empty() && !node.was_lock)) return {};
    node.was_lock = true;
    std::vector<Sighting> seen;
    Sighting now = queued_lock(path, at, Shape::sequence_nodes, node.queue);
    // Those who join and leave the queue do not change the lock more than once.
    now.changes = initial ? 0 : 1;
    const std::string owner = now.holders.empty() ? std::string() : now.holders.front().owner;
    if (node.head && now.fence && now.fence != node.head && owner == node.head_owner) {
      seen.push_back(queued_lock(path, at, Shape::sequence_nodes, {}));
      seen.back().changes = 1;
    }
    node.head = now.fence;
    node.head_owner = owner;
    seen.push_back(std::move(now));
    return seen;
  }
  /// Whether a node that was listed as empty may be an ephemeral one, a lock by itself.
  bool may_be_single(const std::string& path) const {
    const auto node = nodes_.find(path);
    return node != nodes_.end() && !node->second.was_lock && !node->second.persistent &&
           node->second.queue.empty();
  }
  /// Its session (0: it has none, so it is no lock) and the transaction that made it. The lock's
  /// state, and before it that it was free if another node stood there; nothing: no lock, or it has
  /// not changed.
  std::vector<Sighting> single(const std::string& path, std::int64_t session,
                               std::int64_t created_by, std::optional<TimePoint> made_at,
                               TimePoint at, bool initial) {
    const auto found = nodes_.find(path);
    if (found == nodes_.end()) return {};
    Node& node = found->second;
    node.persistent = session == 0;
    if (node.persistent || node.single == created_by) return {};
    Sighting seen = free_lock(path, at, Shape::ephemeral_node);
    seen.changes = initial ? 0 : 1;
    std::vector<Sighting> all;
    if (node.single != 0) all.push_back(seen);
    seen.fence = static_cast<std::uint64_t>(created_by);
    seen.holders.push_back(
        {.owner = fmt::format("{:x}", static_cast<std::uint64_t>(session)), .since = made_at});
    node.single = created_by;
    all.push_back(std::move(seen));
    return all;
  }
  /// The node is gone. A sighting if it was a lock that was held.
  std::optional<Sighting> gone(const std::string& path, TimePoint at) {
    // If it is made again, its parent's list must show it as new.
    const std::size_t slash = path.rfind('/');
    const auto parent = nodes_.find(slash == 0 ? "/" : path.substr(0, slash));
    if (parent != nodes_.end()) parent->second.others.erase(path.substr(slash + 1));
    const auto found = nodes_.find(path);
    if (found == nodes_.end()) return std::nullopt;
    const Node& node = found->second;
    const Shape shape = node.single != 0 ? Shape::ephemeral_node : Shape::sequence_nodes;
    const bool held = node.single != 0 || !node.queue.empty();
    nodes_.erase(found);
    if (!held) return std::nullopt;
    Sighting seen = queued_lock(path, at, shape, {});
    seen.changes = 1;
    return seen;
  }

  /// Contenders that came and went between two lists, since the last call.
  std::uint64_t take_missed() { return std::exchange(missed_, 0); }
  /// Nodes that there was no room for, since the last call.
  std::uint64_t take_unfollowed() { return std::exchange(unfollowed_, 0); }
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    Contenders queue;                       ///< by sequence
    std::set<std::string> others;           ///< children of another kind
    std::optional<std::uint64_t> newest{};  ///< the highest sequence seen
    std::uint64_t changes = 0;
    bool was_lock = false;
    std::optional<std::uint64_t> head{};  ///< the holder's sequence when last settled
    bool persistent = false;              ///< it has no session
    std::int64_t single = 0;              ///< the transaction that made it, if it is one; else 0
    std::string head_owner{};
  };

  const std::size_t most_;
  std::unordered_map<std::string, Node> nodes_;
  std::uint64_t missed_ = 0, unfollowed_ = 0;
};

}  // namespace lockbench::watch

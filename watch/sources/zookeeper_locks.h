#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <boost/regex.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "watch/sources/keys.h"
#include "watch/sources/lock_state.h"

namespace lockbench::watch {

/// The parts of a sequence node's name, as known libraries write it.
struct SequenceNode {
  std::string maker;  ///< UUID of its client; empty if not in the name
  std::uint64_t sequence = 0;
  bool shared = false;  ///< a read lock
  bool permit = false;  ///< of Curator's semaphore
};
/// Reads Curator's "_c_<uuid>-lock-0000000001", kazoo's "<uuid>__lock__0000000001" and plain
/// "lock-0000000001"; nothing for any other name. Takes any bytes.
inline std::optional<SequenceNode> read_sequence_node(const std::string& name) {
  // ZooKeeper appends the ten digits.
  static const boost::regex kForm(
      fmt::format("(?:(?:_c_)?({})-?)?(?:(__READ__|__rlock__|read-)|.*)([0-9]{{10}})", kUuid));
  boost::smatch found;
  if (!boost::regex_match(name, found, kForm)) return std::nullopt;
  const std::string_view before(name.data(), name.size() - found[3].str().size());
  return SequenceNode{.maker = found[1].str(),
                      .sequence = std::stoull(found[3].str()),
                      .shared = found[2].matched,
                      .permit = before.ends_with("-lease-")};
}

/// The state of ZooKeeper's locks, from their nodes. Either each contender has a sequence node
/// below the lock's node and the lowest number holds it, or a single ephemeral node is the lock.
/// Curator's semaphore has a node for each permit below PATH/leases, and who wants one queues below
/// PATH/locks until it has it. Plain data, for one thread.
class ZookeeperLocks {
 public:
  explicit ZookeeperLocks(std::size_t most_nodes) : most_(most_nodes) {}

  /// The nodes to ask about next, after the children of a node were listed.
  struct Listed {
    std::vector<std::string> contenders;  ///< new sequence nodes: who owns them?
    std::vector<std::string> others;      ///< new children of another kind: they may be locks
  };
  /// `made`: how many children it ever had. `initial`: it may be older than the watch.
  Listed listed(const std::string& path, const std::vector<std::string>& children,
                std::uint64_t made, bool initial) {
    Listed result;
    if (!nodes_.contains(path) && nodes_.size() >= most_) {
      ++unfollowed_;
      return result;
    }
    Node& node = nodes_[path];
    std::set<std::uint64_t> present;
    std::set<std::string> others;
    std::uint64_t fresh = 0;
    for (const std::string& name : children) {
      const bool known_other = node.others.contains(name);
      const auto sequence = read_sequence_node(name);
      if (known_other || !sequence) {
        others.insert(name);
        if (!known_other) {
          result.others.push_back(name);
          ++fresh;
        }
        continue;
      }
      present.insert(sequence->sequence);
      const auto [place, added] = node.queue.try_emplace(sequence->sequence);
      if (!added) continue;
      place->second.node = name;
      place->second.owner = sequence->maker.empty() ? name : sequence->maker;
      place->second.shared = sequence->shared;
      result.contenders.push_back(name);
      if (sequence->permit) {
        node.permits = true;
        const Node* const queue = beside(path, kPermits, kQueue);
        if (queue != nullptr && !queue->queue.empty()) {
          node.taken_under[sequence->sequence] = queue->queue.begin()->first;
        }
      }
      ++node.changes;
      ++fresh;
    }
    const std::uint64_t before = node.made.value_or(initial ? made - std::min(made, fresh) : 0);
    node.made = made;
    const Node* const permits = beside(path, kQueue, kPermits);
    const bool is_queue = permits != nullptr && permits->permits;
    const std::uint64_t since = made - std::min(made, before);
    if (!is_queue) node.unseen += since - std::min(since, fresh);
    node.changes += std::erase_if(
        node.queue, [&](const auto& contender) { return !present.contains(contender.first); });
    std::erase_if(node.taken_under,
                  [&](const auto& permit) { return !present.contains(permit.first); });
    node.others = std::move(others);
    // Of a node without children nothing tells what those were that are gone.
    if (node.was_lock || children.empty()) miss(node);
    return result;
  }
  /// Takes a new contender's session; 0: it has none, so it is no contender. `made_at`: only if it
  /// is older than the watch.
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
    place->second.about = "session 0x" + place->second.owner;
    place->second.since = made_at;
  }
  /// The lock's state after listed() and owned(), preceded by a free one if its holder released it
  /// and took it again. Empty if the node is no lock or has not changed. `initial`: the lock is
  /// older than the watch.
  std::vector<Sighting> settle(const std::string& path, TimePoint at, bool initial) {
    const auto found = nodes_.find(path);
    if (found == nodes_.end()) return {};
    Node& node = found->second;
    const std::uint64_t changes = std::exchange(node.changes, 0);
    if (changes == 0 || (node.queue.empty() && !node.was_lock)) return {};
    node.was_lock = true;
    miss(node);
    std::vector<Sighting> seen;
    // Who waits for a permit, or has just got it, shows in the queue.
    const Node* const permits = beside(path, kQueue, kPermits);
    if (node.permits || (permits != nullptr && permits->permits)) {
      const std::string base = path.substr(0, path.rfind('/'));
      seen = semaphore(base, at);
      for (Sighting& one : seen) one.changes = initial ? 0 : 1;
      return seen;
    }
    node.reported = true;
    Sighting now = queued_lock(path, at, Shape::sequence_nodes, node.queue);
    // One change, however many contenders joined or left the queue.
    now.changes = initial ? 0 : 1;
    now.missed_holdings = std::exchange(node.missed, 0);
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
  /// Whether a node without children may be a single ephemeral node that is a lock.
  bool may_be_single(const std::string& path) const {
    const auto node = nodes_.find(path);
    return node != nodes_.end() && !node->second.was_lock && !node->second.persistent &&
           node->second.queue.empty();
  }
  /// Takes the single node's session (0: none, so no lock) and the transaction that created it.
  /// Returns the lock's state, preceded by a free one if the node replaced another; empty if it is
  /// no lock or has not changed.
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
    const std::string owner = fmt::format("{:x}", static_cast<std::uint64_t>(session));
    seen.holders.push_back({.owner = owner, .since = made_at, .about = "session 0x" + owner});
    node.single = created_by;
    all.push_back(std::move(seen));
    return all;
  }
  /// Takes the deletion of a node. Returns a sighting if it was a held lock.
  std::optional<Sighting> gone(const std::string& path, TimePoint at) {
    // If it is created again, it must count as new in its parent's list.
    const std::size_t slash = path.rfind('/');
    const auto parent = nodes_.find(slash == 0 ? "/" : path.substr(0, slash));
    if (parent != nodes_.end()) parent->second.others.erase(path.substr(slash + 1));
    const auto found = nodes_.find(path);
    if (found == nodes_.end()) return std::nullopt;
    const Node& node = found->second;
    const Shape shape = node.single != 0 ? Shape::ephemeral_node
                        : node.permits   ? Shape::permits
                                         : Shape::sequence_nodes;
    const bool held = node.single != 0 || !node.queue.empty();
    nodes_.erase(found);
    if (!held) return std::nullopt;
    Sighting seen = queued_lock(path, at, shape, {});
    seen.changes = 1;
    return seen;
  }

  /// Contenders that came and went between two listings, since the last call.
  std::uint64_t take_missed() { return std::exchange(missed_, 0); }
  /// Number of nodes without room since the last call.
  std::uint64_t take_unfollowed() { return std::exchange(unfollowed_, 0); }
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    Contenders queue;                     ///< by sequence
    std::set<std::string> others;         ///< children of another kind
    std::optional<std::uint64_t> made{};  ///< how many children it ever had, at the last look
    std::uint64_t changes = 0;
    std::uint64_t unseen = 0;  ///< children made and gone between two looks; of a lock: contenders
    std::uint64_t missed = 0;  ///< contenders since the last settle()
    bool was_lock = false;
    std::optional<std::uint64_t> head{};  ///< the holder's sequence at the last settle()
    bool persistent = false;              ///< the node has no session, so it is no lock
    std::int64_t single = 0;              ///< if the node is a lock by itself: the transaction that
                                          ///< created it; else 0
    std::string head_owner{};
    bool permits = false;   ///< its children are permits
    bool reported = false;  ///< as a lock with a queue
    /// By a permit's sequence: the head of the queue when the permit was first seen.
    std::map<std::uint64_t, std::uint64_t> taken_under{};
  };

  static constexpr std::string_view kQueue = "/locks", kPermits = "/leases";

  void miss(Node& node) {
    missed_ += node.unseen;
    node.missed += std::exchange(node.unseen, 0);
  }

  /// The node beside `path`, whose name ends with `own`; null if there is none.
  Node* beside(const std::string& path, std::string_view own, std::string_view other) {
    if (!path.ends_with(own)) return nullptr;
    const auto found = nodes_.find(path.substr(0, path.size() - own.size()) + std::string(other));
    return found == nodes_.end() ? nullptr : &found->second;
  }

  /// The state of the semaphore; before it, the end of its queue if that was taken for a lock.
  std::vector<Sighting> semaphore(const std::string& base, TimePoint at) {
    std::vector<Sighting> seen;
    const std::string permits = base + std::string(kPermits), queue = base + std::string(kQueue);
    Node& node = nodes_[permits];
    const auto waiting = nodes_.find(queue);
    Sighting now = free_lock(permits, at, Shape::permits);
    now.waiting.emplace();
    if (waiting != nodes_.end()) {
      if (std::exchange(waiting->second.reported, false)) {
        seen.push_back(queued_lock(queue, at, Shape::sequence_nodes, {}));
        seen.back().ended = Ending::released;
      }
      for (const auto& [number, one] : waiting->second.queue) now.waiting->push_back(one);
    }
    for (const auto& [number, permit] : node.queue) {
      // The head of the queue makes its node, and waits until there are no more than permits.
      const auto taken = node.taken_under.find(number);
      const bool waits = taken != node.taken_under.end() && waiting != nodes_.end() &&
                         !waiting->second.queue.empty() &&
                         waiting->second.queue.begin()->first == taken->second &&
                         waiting->second.queue.begin()->second.owner == permit.owner;
      if (!waits) now.holders.push_back(permit);
    }
    now.waiters = now.waiting->size();
    seen.push_back(std::move(now));
    return seen;
  }

  const std::size_t most_;
  std::unordered_map<std::string, Node> nodes_;
  std::uint64_t missed_ = 0, unfollowed_ = 0;
};

}  // namespace lockbench::watch

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "watch/sighting.h"
#include "watch/sources/lock_state.h"

namespace lockbench::watch {

/// The name of a sequence node below a lock's node, in the form of any known library.
struct SequenceNode {
  std::string maker;  ///< a UUID; empty: the name does not tell
  std::uint64_t sequence = 0;
  bool shared = false;  ///< of a read lock
};
/// Reads Curator's "_c_<uuid>-lock-0000000001", kazoo's "<uuid>__lock__0000000001" and plain
/// "lock-0000000001"; nothing for any other name. Takes any bytes.
std::optional<SequenceNode> read_sequence_node(std::string_view name);

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
  Listed listed(const std::string& path, const std::vector<std::string>& children);
  /// A new contender's session; 0: it has none, so it is no contender. `made_at`: if it was there
  /// when the watch began.
  void owned(const std::string& path, const std::string& name, std::int64_t session,
             std::optional<TimePoint> made_at);
  /// What follows from listed() and owned(): the lock's state, and before it that it was free if
  /// its holder gave it back and took it again; nothing: the node is no lock, or nothing has
  /// changed. `initial`: it was there when the watch began.
  std::vector<Sighting> settle(const std::string& path, TimePoint at, bool initial);
  /// Whether a node that was listed as empty may be an ephemeral one, a lock by itself.
  bool may_be_single(const std::string& path) const;
  /// Its session (0: it has none, so it is no lock) and the transaction that made it. The lock's
  /// state, and before it that it was free if another node stood there; nothing: no lock, or it has
  /// not changed.
  std::vector<Sighting> single(const std::string& path, std::int64_t session,
                               std::int64_t created_by, std::optional<TimePoint> made_at,
                               TimePoint at, bool initial);
  /// The node is gone. A sighting if it was a lock that was held.
  std::optional<Sighting> gone(const std::string& path, TimePoint at);

  /// Contenders that came and went between two lists, since the last call.
  std::uint64_t take_missed() { return std::exchange(missed_, 0); }
  /// Nodes that there was no room for, since the last call.
  std::uint64_t take_unfollowed() { return std::exchange(unfollowed_, 0); }
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    Contenders queue;                       ///< by sequence
    std::map<std::string, bool> others;     ///< children of another kind
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

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/zookeeper/client/messages.h"

namespace lockbench::simulate {

/// A request, as the server reads it.
struct ZookeeperRequest {
  static constexpr std::int32_t kDelete = 2, kExists = 3, kGetData = 4, kGetChildren = 8, kSync = 9,
                                kPing = 11, kCreate = 15, kCreateContainer = 19, kSetWatches = 101,
                                kBeginSession = -10, kEndSession = -11;

  std::int32_t xid = 0, operation = 0;
  std::string path{};
  bool watch = false;
  std::int32_t version = 0, mode = 0;  ///< of kDelete; of a new node
  std::int64_t seen = 0;               ///< of kSetWatches: the latest transaction
  std::vector<std::string> watched{};  ///< likewise: nodes

  /// Nothing if it does not have the form that our clients send.
  static std::optional<ZookeeperRequest> read(std::string_view packet);
  /// The members of an ensemble carry it out in one order.
  bool is_agreed() const;
};

/// What a request changes, once the ensemble has agreed on it.
struct ZookeeperChange {
  enum class Kind { none, make, remove, end_session };
  Kind kind = Kind::none;
  zookeeper::Code code = zookeeper::Code::ok;  ///< if it is another one, nothing changes
  std::string path{};
  std::int64_t session = 0;  ///< that ends, or the owner of an ephemeral node
  bool container = false;
  std::int64_t transaction = 0;
  std::int64_t at_ms = 0;  ///< since 1970
};

/// The nodes of one ZooKeeper server, and the watches of its connections. Answers as ZooKeeper 3.8,
/// for nodes without data that all may touch. It has no clock, no sessions and no connections.
class ZookeeperTree {
 public:
  using Watcher = std::uint64_t;
  /// A packet to a connection.
  struct Event {
    Watcher watcher = 0;
    std::string packet;
  };

  ZookeeperTree();

  /// What the request of this session would change; without transaction and time.
  ZookeeperChange plan(const ZookeeperRequest& request, std::int64_t session) const;
  /// Returns the events that it causes, in order.
  std::vector<Event> apply(const ZookeeperChange& change);
  /// The answer to the request whose change has just been applied.
  std::string answer(const ZookeeperRequest& request, const ZookeeperChange& change) const;
  /// The answer to any other request, after the events that it causes.
  std::string read(const ZookeeperRequest& request, Watcher watcher);
  /// The connection is gone.
  void forget(Watcher watcher);

  /// The latest transaction.
  std::int64_t latest() const { return latest_; }
  /// Containers whose last child is gone; the server removes them now and then.
  std::vector<std::string> emptied_containers() const;
  /// The node's children, and then itself; nothing if there is none.
  std::vector<std::string> with_children(const std::string& path) const;
  /// The session of the lock's node, or of the first in its queue; 0: none.
  std::int64_t holder_of(const std::string& lock) const;
  /// The keys of locks that are held or wanted.
  std::vector<std::string> locked_keys() const;

 private:
  struct Node {
    std::int64_t made_by = 0, made_at_ms = 0;
    std::int64_t owner = 0;  ///< the session of an ephemeral node
    bool container = false;
    std::int32_t children_made = 0;
    std::int64_t children_changed_by = 0;
    std::set<std::string> children{};
  };
  using Watches = std::map<std::string, std::set<Watcher>, std::less<>>;

  const Node* find(std::string_view path) const;
  ZookeeperChange plan_node(const ZookeeperRequest& request, std::int64_t session) const;
  void make(const ZookeeperChange& change, std::vector<Event>& events);
  void remove(const std::string& path, std::int64_t transaction, std::vector<Event>& events);
  /// Each watch ends with its event. Returns those that had one; leaves out `except`.
  static std::set<Watcher> fire(Watches& watches, std::string_view path, std::int32_t type,
                                std::vector<Event>& events, const std::set<Watcher>& except = {});
  /// Sets watches again, or sends the event that was missed. Returns the latter.
  std::string set_watches(const ZookeeperRequest& request, Watcher watcher);

  std::map<std::string, Node, std::less<>> nodes_;
  std::map<std::int64_t, std::set<std::string>> ephemerals_;  ///< by their owners
  Watches node_watches_, list_watches_;                       ///< the latter: of lists of children
  std::int64_t latest_ = 0;
};

}  // namespace lockbench::simulate

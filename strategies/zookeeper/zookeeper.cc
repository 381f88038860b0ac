#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "strategies/registry.h"
#include "strategies/zookeeper/lock.h"

namespace lockbench::zookeeper {
namespace {

/// A queue of ephemeral sequential nodes. The client with the lowest number has the lock; each of
/// the others watches the node ahead of it, so that a release wakes one client. Joining and reading
/// the queue takes one round trip, as ZooKeeper keeps the order of a session's requests.
class NodeQueue : public NodeLock {
 public:
  using NodeLock::NodeLock;

 protected:
  void begin(const Claim& /*claim*/) override {
    // Unique, so that the client recognises its node even if the creation was not answered.
    name_ = random_token(env()) + "-";
    ahead_.clear();
  }

  StoreResult<bool> ask(Claim& claim, const std::stop_token& stop) override {
    if (is_complete(claim.node)) {
      const auto there = call(Request::Kind::children, claim.lock, claim.key, stop);
      if (!there) return tl::unexpected(there.error());
      const Place place = read_place(there->children, claim);
      if (place.there) return !place.ahead;
      // The node was removed by another client: join the queue again.
    }
    return join(claim, stop);
  }

  WaitResult wait_turn(const Claim& claim, TimePoint deadline,
                       const std::stop_token& stop) override {
    if (ahead_.empty()) return WaitResult::signalled;
    session().listen(ahead_);
    const auto seen = call(Request::Kind::look, ahead_, claim.key, stop);
    // If it failed or the node is gone, the next attempt will show it.
    if (!seen || !seen->done()) return WaitResult::signalled;
    return session().wait(deadline, stop);
  }

  StoreResult<void> give_up(const Claim& claim, const std::stop_token& stop) override {
    std::vector<Request> removals;
    if (is_complete(claim.node)) {
      removals.push_back({Request::Kind::remove, claim.node});
    } else {
      const auto there = call_in_sync(Request::Kind::children, claim.lock, claim.key, stop);
      if (!there) return tl::unexpected(there.error());
      for (const std::string& child : there->children) {
        std::string path = claim.lock + "/" + child;
        if (path.starts_with(claim.node)) removals.push_back({Request::Kind::remove, path});
      }
      if (removals.empty()) return {};
    }
    return session().call(removals, claim.key, stop).map([](const auto&) {});
  }

  /// Behind whom the claim stands among these children of the lock's node.
  virtual Place place_of(const std::vector<std::string>& children, std::string_view own) const {
    return place_among(children, own);
  }
  Place read_place(const std::vector<std::string>& children, const Claim& claim) {
    const Place place =
        place_of(children, std::string_view(claim.node).substr(claim.lock.size() + 1));
    ahead_ = place.ahead ? fmt::format("{}/{}", claim.lock, *place.ahead) : "";
    return place;
  }

 private:
  static bool is_complete(std::string_view node) { return sequence_of(node).has_value(); }

  StoreResult<bool> join(Claim& claim, const std::stop_token& stop) {
    const std::string path = claim.lock + "/" + name_;
    const std::array<Request, 2> requests{Request{Request::Kind::make_sequential, path},
                                          {Request::Kind::children, claim.lock}};
    const auto replies = make_node(requests, claim, stop);
    if (!replies) return tl::unexpected(replies.error());
    const Reply& made = replies->front();
    claim.node = made.path;
    if (!made.done()) return false;
    claim.fencing = static_cast<std::uint64_t>(made.created_by);
    const Place place = read_place(replies->back().children, claim);
    return place.there && !place.ahead;
  }

  std::string name_;   ///< of the node, without its number
  std::string ahead_;  ///< the path of the node ahead
};

const Registration zookeeper(on_zookeeper({
    .name = "zookeeper",
    .summary = "A queue of ephemeral sequential nodes, each of which watches its predecessor",
    .acquire_commands = {"create key/token- (ephemeral, sequential)",
                         "getChildren key (sent along with it, and after each wait)",
                         "getData of the node ahead (with a watch)",
                         "delete key/token-number (giving up)"},
    .release_commands = {"delete key/token-number"},
    .source = "ZooKeeper Recipes, \"Locks\"; fencing by czxid",
    .typical = true,
    .libraries = {{"Java", "Curator InterProcessMutex", "sessionTimeoutMs = {ttl}",
                   Reentry::counted},
                  {"Go", "go-zookeeper/zk NewLock", "zk.Connect with a session time-out of {ttl}"},
                  {"Python", "kazoo Lock", "KazooClient(timeout = {ttl})"}},
    .traits = {.release_check = OwnerCheck::atomic, .fencing = true, .fair = true},
    .make = construct<NodeQueue>,
}));

/// The same queue for a semaphore: as many of the lowest nodes as there are permits hold one. A
/// holder of any of them may leave first, so a waiter watches all children instead of the node
/// ahead of it, and each change wakes all waiters.
class Semaphore : public NodeQueue {
 public:
  explicit Semaphore(const Context& context)
      : NodeQueue(context), permits_(context.options.permits) {}

 protected:
  StoreResult<bool> ask(Claim& claim, const std::stop_token& stop) override {
    auto granted = NodeQueue::ask(claim, stop);
    // Holders come and go in any order: a resource must not compare their numbers.
    claim.fencing.reset();
    return granted;
  }

  WaitResult wait_turn(const Claim& claim, TimePoint deadline,
                       const std::stop_token& stop) override {
    // Without a node of its own, the next attempt makes one.
    if (!sequence_of(claim.node)) return WaitResult::signalled;
    session().listen(claim.lock);
    const auto seen = call(Request::Kind::watch_children, claim.lock, claim.key, stop);
    // If it failed or a permit is free, the next attempt will show it.
    if (!seen || !seen->done() || !read_place(seen->children, claim).ahead) {
      return WaitResult::signalled;
    }
    return session().wait(deadline, stop);
  }

  Place place_of(const std::vector<std::string>& children, std::string_view own) const override {
    Place place = place_among(children, own);
    const auto mine = sequence_of(own);
    const auto before = std::ranges::count_if(children, [&](const std::string& child) {
      const auto sequence = sequence_of(child);
      return sequence && mine && comes_before(*sequence, *mine);
    });
    if (before < permits_) place.ahead.reset();
    return place;
  }

 private:
  const int permits_;
};

const Registration zookeeper_semaphore(on_zookeeper({
    .name = "zookeeper-semaphore",
    .summary = "A queue of ephemeral sequential nodes: the --permits lowest hold one, the others "
               "watch all",
    .acquire_commands = {"create key/token- (ephemeral, sequential)",
                         "getChildren key (sent along with it, and after each wait)",
                         "getChildren key (with a watch)", "delete key/token-number (giving up)"},
    .release_commands = {"delete key/token-number"},
    .source = "ZooKeeper Recipes, \"Locks\", with permits; Curator's InterProcessSemaphoreV2 has a "
              "mutex in front of its permits instead",
    .libraries = {{"Java", "Curator InterProcessSemaphoreV2 (with other nodes)",
                   "sessionTimeoutMs = {ttl}", Reentry::none, true},
                  {"Python", "kazoo Semaphore (with other nodes)", "KazooClient(timeout = {ttl})",
                   Reentry::none, true}},
    .traits = {.release_check = OwnerCheck::atomic, .permits = true, .fair = true},
    .hazards = {{"member-isolated-fenced", HazardOutcome::lost_update},
                {"session-expiry", HazardOutcome::lost_update}},
    .make = construct<Semaphore>,
}));

}  // namespace
}  // namespace lockbench::zookeeper

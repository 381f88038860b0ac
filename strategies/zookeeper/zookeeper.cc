#include <fmt/format.h>

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

  Place read_place(const std::vector<std::string>& children, const Claim& claim) {
    const Place place =
        place_among(children, std::string_view(claim.node).substr(claim.lock.size() + 1));
    ahead_ = place.ahead ? fmt::format("{}/{}", claim.lock, *place.ahead) : "";
    return place;
  }

  std::string name_;   ///< of the node, without its number
  std::string ahead_;  ///< the path of the node ahead
};

const Registration zookeeper(with_known_hazards({
    .name = "zookeeper",
    .backend = "zookeeper",
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
    .safe_session = kSafeSession,
    .traits = {.expiry = Expiry::session,
               .release_check = OwnerCheck::atomic,
               .fencing = true,
               .fair = true,
               .waiting = WaitPolicy::notify(),
               .waiting_choices = {}},
    // A client of an isolated member learns late that its session has ended.
    .hazards = {{"member-isolated", HazardOutcome::double_grant}},
    .make = construct<NodeQueue>,
}));

}  // namespace
}  // namespace lockbench::zookeeper

#include <array>

#include "strategies/registry.h"
#include "strategies/zookeeper/lock.h"

namespace lockbench::zookeeper {
namespace {

/// One ephemeral node: the client that creates it has the lock, and all others watch it. Its
/// deletion wakes all of them, though only one can create it again. By the watch, the holder also
/// learns of a removal.
class Herd : public NodeLock {
 public:
  using NodeLock::NodeLock;

 protected:
  void begin(const Claim& /*claim*/) override {}

  StoreResult<bool> ask(Claim& claim, const std::stop_token& stop) override {
    const std::array<Request, 2> requests{Request{Request::Kind::make_ephemeral, claim.lock},
                                          {Request::Kind::look, claim.lock}};
    watched_ = true;
    session().listen(claim.lock);
    const auto replies = make_node(requests, claim, stop);
    if (!replies) return tl::unexpected(replies.error());
    const Reply& made = replies->front();
    const Reply& seen = replies->back();
    watched_ = seen.done();
    // An existing node may be this client's, if its creation was not answered.
    if (!made.done() && !(seen.done() && is_ours(seen, claim))) {
      claim.node.clear();
      return false;
    }
    claim.fencing = static_cast<std::uint64_t>(made.done() ? made.created_by : seen.created_by);
    return true;
  }

  WaitResult wait_turn(const Claim& /*claim*/, TimePoint deadline,
                       const std::stop_token& stop) override {
    // Deleted between the two requests.
    if (!watched_) return WaitResult::signalled;
    return session().wait(deadline, stop);
  }

  StoreResult<void> give_up(const Claim& claim, const std::stop_token& stop) override {
    const auto seen = call_in_sync(Request::Kind::look, claim.lock, claim.key, stop);
    if (!seen) return tl::unexpected(seen.error());
    if (!seen->done() || !is_ours(*seen, claim)) return {};
    // It cannot become another client's meanwhile: it lives as long as this session.
    return call(Request::Kind::remove, claim.lock, claim.key, stop).map([](const Reply&) {});
  }

 private:
  /// Created in this session, and not held by a lease.
  bool is_ours(const Reply& node, const Claim& claim) {
    return node.owner == session().id() && !session().is_bound(claim.lock);
  }

  bool watched_ = false;
};

const Registration zookeeper_herd(on_zookeeper({
    .name = "zookeeper-herd",
    .summary = "One ephemeral node that all clients watch: its deletion wakes all of them",
    .acquire_commands = {"create key (ephemeral)",
                         "getData key (with a watch, sent along with it)"},
    .release_commands = {"delete key"},
    .source = "the herd effect of ZooKeeper Recipes, \"Locks\"",
    .superseded_by = "zookeeper",
    .superseded_because = "each release wakes all waiters",
    .traits = {.release_check = OwnerCheck::two_steps, .fencing = true},
    .make = construct<Herd>,
}));

}  // namespace
}  // namespace lockbench::zookeeper

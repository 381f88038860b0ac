#include <algorithm>
#include <array>

#include "strategies/zookeeper/lock.h"
#include "tests/support/known_bugs.h"

namespace lockbench::test {
namespace {

enum class CuratorsMistake { none, takes_older_node, forgets_failed_release };

/// A queue of sequential nodes that first looks for the node of an attempt without an answer, as
/// Curator's protected creations do.
template <CuratorsMistake kMistake>
class CuratorsQueue : public zookeeper::NodeLock {
  static constexpr bool kTakesOlder = kMistake == CuratorsMistake::takes_older_node;
  static constexpr bool kForgets = kMistake == CuratorsMistake::forgets_failed_release;
  using Kind = zookeeper::Request::Kind;

 public:
  CuratorsQueue(std::string_view /*name*/, const Context& context) : NodeLock(context) {}

 protected:
  void begin(const Claim& /*claim*/) override {
    // With one name for all, a node may be of an earlier session, and will end with that.
    if (!kTakesOlder || name_.empty()) name_ = random_token(env()) + "-";
    holds_ = false;
  }

  StoreResult<bool> ask(Claim& claim, const std::stop_token& stop) override {
    auto there = call(Kind::children, claim.lock, claim.key, stop);
    if (!there) return tl::unexpected(there.error());
    auto own = find_own(there->children);
    if (own == there->children.end()) {
      const std::array requests{zookeeper::Request{Kind::make_sequential, claim.lock + "/" + name_},
                                zookeeper::Request{Kind::children, claim.lock}};
      auto replies = make_node(requests, claim, stop);
      if (!replies) return tl::unexpected(replies.error());
      if (!replies->front().done()) return false;
      there = std::move(replies->back());
      own = find_own(there->children);
      if (own == there->children.end()) return false;
    }
    claim.node = claim.lock + "/" + *own;
    const auto node = call(Kind::exists, claim.node, claim.key, stop);
    if (!node) return tl::unexpected(node.error());
    if (!node->done()) return false;
    claim.fencing = static_cast<std::uint64_t>(node->created_by);
    const zookeeper::Place place = zookeeper::place_among(there->children, *own);
    ahead_ = place.ahead ? claim.lock + "/" + std::string(*place.ahead) : "";
    holds_ = ahead_.empty();
    return holds_;
  }

  WaitResult wait_turn(const Claim& claim, TimePoint deadline,
                       const std::stop_token& stop) override {
    if (ahead_.empty()) return WaitResult::signalled;
    session().listen(ahead_);
    const auto seen = call(Kind::look, ahead_, claim.key, stop);
    return seen && seen->done() ? session().wait(deadline, stop) : WaitResult::signalled;
  }

  StoreResult<void> give_up(const Claim& claim, const std::stop_token& stop) override {
    if (holds_ && kForgets) return {};
    const auto there = call_in_sync(Kind::children, claim.lock, claim.key, stop);
    if (!there) return tl::unexpected(there.error());
    const auto own = find_own(there->children);
    if (own == there->children.end()) return {};
    return call(Kind::remove, claim.lock + "/" + *own, claim.key, stop).map([](const auto&) {});
  }

 private:
  std::vector<std::string>::const_iterator find_own(const std::vector<std::string>& children) {
    return std::ranges::find_if(
        children, [this](const std::string& child) { return child.starts_with(name_); });
  }

  std::string name_;   ///< of the node, without its number
  std::string ahead_;  ///< the path of the node ahead
  bool holds_ = false;
};

}  // namespace

std::vector<KnownBug> bugs_on_zookeeper() {
  return {
      {.name = "NodeOfAnEarlierSession",
       .what = "a node of an earlier session is taken for one of this session",
       .where = "Curator 498, 604",
       .oracle = simulate::Oracle::overlap,
       .seed = 804,
       .with = like<CuratorsQueue<CuratorsMistake::takes_older_node>>("zookeeper"),
       .without = like<CuratorsQueue<CuratorsMistake::none>>("zookeeper")},
      {.name = "ForgottenRelease",
       .what = "a release without an answer is forgotten, and its node stays",
       .where = "Curator 678",
       .oracle = simulate::Oracle::liveness,
       .seed = 241,
       .with = like<CuratorsQueue<CuratorsMistake::forgets_failed_release>>("zookeeper"),
       .without = like<CuratorsQueue<CuratorsMistake::none>>("zookeeper")},
  };
}

}  // namespace lockbench::test

#include "strategies/registry.h"
#include "strategies/zookeeper/client/messages.h"
#include "strategies/zookeeper/lock.h"
#include "tests/conformance/common/rejection.h"

namespace lockbench::test {
namespace {

using zookeeper::Request;

enum class Flaw {
  compares_whole_names,
  trusts_its_wait,
  leaves_its_node,
  forgets_its_unanswered_node
};

/// The queue of sequential nodes with one flaw.
template <Flaw kFlaw>
class BrokenQueue : public zookeeper::NodeLock {
 public:
  using NodeLock::NodeLock;

 protected:
  void begin(const Claim& /*claim*/) override {
    name_ = random_token(env()) + "-";
    ahead_.clear();
    has_waited_ = false;
  }

  StoreResult<bool> ask(Claim& claim, const std::stop_token& stop) override {
    if (kFlaw == Flaw::trusts_its_wait && has_waited_) return true;
    std::vector<Request> requests;
    if (claim.node.empty()) {
      claim.node = claim.lock + "/" + name_;
      requests.push_back({Request::Kind::make_sequential, claim.node});
    }
    requests.push_back({Request::Kind::children, claim.lock});
    const auto replies = session().call(requests, claim.key, stop);
    if (!replies) {
      if (kFlaw == Flaw::forgets_its_unanswered_node) claim.node.clear();
      return tl::unexpected(replies.error());
    }
    if (!replies->front().done()) {
      claim.node.clear();
      if (const auto path = make_path(claim.lock, claim.key, stop); !path) {
        return tl::unexpected(path.error());
      }
      return ask(claim, stop);
    }
    if (requests.size() > 1) {
      claim.node = replies->front().path;
      claim.fencing = static_cast<std::uint64_t>(replies->front().created_by);
    }
    return look_round(replies->back().children, claim);
  }

  WaitResult wait_turn(const Claim& claim, TimePoint deadline,
                       const std::stop_token& stop) override {
    session().listen(ahead_);
    const auto seen = call(Request::Kind::look, ahead_, claim.key, stop);
    const WaitResult result =
        seen && seen->done() ? session().wait(deadline, stop) : WaitResult::signalled;
    has_waited_ = result == WaitResult::signalled;
    return result;
  }

  StoreResult<void> give_up(const Claim& claim, const std::stop_token& stop) override {
    if (kFlaw == Flaw::leaves_its_node) return {};
    const auto there = call(Request::Kind::children, claim.lock, claim.key, stop);
    if (!there) return tl::unexpected(there.error());
    for (const std::string& child : there->children) {
      const std::string path = claim.lock + "/" + child;
      if (path.starts_with(claim.node)) call(Request::Kind::remove, path, claim.key, stop);
    }
    return {};
  }

 private:
  bool look_round(const std::vector<std::string>& children, const Claim& claim) {
    const std::string own = claim.node.substr(claim.lock.size() + 1);
    ahead_.clear();
    if (kFlaw == Flaw::compares_whole_names) {
      std::string nearest;
      for (const std::string& child : children) {
        if (child < own && child > nearest) nearest = child;
      }
      if (!nearest.empty()) ahead_ = claim.lock + "/" + nearest;
    } else if (const auto place = zookeeper::place_among(children, own); place.ahead) {
      ahead_ = fmt::format("{}/{}", claim.lock, *place.ahead);
    }
    return ahead_.empty();
  }

  std::string name_, ahead_;
  bool has_waited_ = false;
};

/// Believes in its lock for ever, or for the TTL, regardless of the server.
template <bool kForTheTtl>
class Credulous : public LockStrategy {
 public:
  explicit Credulous(const Context& context)
      : env_(context.env), inner_(find_strategy("zookeeper")->make(context)) {}

  StoreResult<void> connect() override { return inner_->connect(); }
  AcquireResult acquire(const AcquireRequest& request) override {
    const TimePoint end = kForTheTtl ? env_.now() + request.ttl : TimePoint::max();
    AcquireRequest patient = request;
    if (kForTheTtl) patient.ttl = std::chrono::seconds(60);
    AcquireResult result = inner_->acquire(patient);
    if (result.lease) {
      known_ = result.lease->state;
      result.lease->state = std::make_shared<LeaseState>(end);
    }
    return result;
  }
  ReleaseResult release(const Lease& lease) override {
    Lease known = lease;
    known.state = known_;
    return inner_->release(known);
  }
  RenewResult renew(const Lease& lease, Duration ttl) override { return inner_->renew(lease, ttl); }

 private:
  Env& env_;
  std::unique_ptr<LockStrategy> inner_;
  std::shared_ptr<LeaseState> known_;
};

Rejection rejection(std::string_view property, decltype(Descriptor::make) make,
                    std::string_view reason) {
  Descriptor lock = *find_strategy("zookeeper");
  lock.name = "broken";
  lock.make = std::move(make);
  return {property, std::move(lock), reason};
}

std::vector<Rejection> all_rejections() {
  using enum Flaw;
  return {rejection("DeadContendersChangeNoTurns", construct<BrokenQueue<compares_whole_names>>,
                    "granted with one ahead"),
          rejection("DeadContendersChangeNoTurns", construct<BrokenQueue<trusts_its_wait>>,
                    "granted with one ahead"),
          rejection("NothingStaysInTheStore", construct<BrokenQueue<leaves_its_node>>,
                    "left in the store after a release"),
          rejection("UnansweredNodeIsGivenUpLater",
                    construct<BrokenQueue<forgets_its_unanswered_node>>, "an orphan"),
          rejection("BeliefEndsBeforeTheSession", construct<Credulous<false>>, "valid for longer"),
          rejection("EndOfTheSessionIsKnown", construct<Credulous<false>>, "does not know"),
          rejection("LateGrantIsNotHandedOut", construct<Credulous<true>>, "past its validity")};
}

class BrokenZookeeperLocks : public testing::TestWithParam<Rejection> {};

TEST_P(BrokenZookeeperLocks, AreRejected) { expect_rejection(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, BrokenZookeeperLocks, testing::ValuesIn(all_rejections()),
                         rejection_name);

}  // namespace
}  // namespace lockbench::test

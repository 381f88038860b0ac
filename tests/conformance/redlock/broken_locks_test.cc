#include <gtest/gtest.h>

#include <ostream>

#include "strategies/redis/redlock_lock.h"
#include "strategies/redis/scripts.h"
#include "strategies/waiting/retry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"

namespace lockbench::test {
namespace {

/// What is wrong with a Redlock that is otherwise sound.
enum class Flaw {
  none,
  ignores_drift,
  ignores_validity,
  frees_only_what_it_heard_of,
  minority_wins
};

/// Redlock in few words: one node after the other, and nothing for hard times.
template <Flaw flaw>
class PlainRedlock : public LockStrategy {
 public:
  explicit PlainRedlock(const Context& context) : env_(context.env), waiting_(context.waiting) {
    auto& factory =
        context.services.get_or_make<redis::ConnectionFactory>(redis::make_hiredis_factory);
    for (const std::string& url : context.endpoints.at("redis")) {
      nodes_.push_back(factory.make(redis::parse_endpoint(url).value(), milliseconds(200), env_));
    }
  }

  StoreResult<void> connect() override {
    for (const auto& node : nodes_) {
      if (auto connected = node->connect(); !connected) return connected;
    }
    return {};
  }

  AcquireResult acquire(const AcquireRequest& request) override {
    return retry(request, env_, waiting_,
                 [&](const AcquireRequest& once) { return try_once(once); });
  }

  ReleaseResult release(const Lease& lease) override {
    int freed = 0;
    for (const auto& node : nodes_) freed += free(*node, lease) ? 1 : 0;
    return {freed >= needed() ? ReleaseOutcome::released : ReleaseOutcome::not_owner, {}};
  }

  RenewResult renew(const Lease& /*lease*/, Duration /*ttl*/) override {
    return {RenewOutcome::failed, "not here"};
  }

 private:
  int needed() const {
    const int majority = redis::majority_of(static_cast<int>(nodes_.size()));
    return flaw == Flaw::minority_wins ? majority - 1 : majority;
  }

  bool free(redis::Connection& node, const Lease& lease) {
    const auto freed = node.call(redis::scripts::release_if_token, {lease.key}, {lease.token});
    return freed && freed->is_integer(1);
  }

  Attempt try_once(const AcquireRequest& request) {
    const TimePoint started = env_.now();
    Lease lease{.key = std::string(request.key), .token = random_token(env_)};
    const std::string ttl = std::to_string(ceil_milliseconds(request.ttl));
    std::vector<redis::Connection*> granted;
    for (const auto& node : nodes_) {
      const auto reply = node->call({"SET", lease.key, lease.token, "NX", "PX", ttl});
      if (reply && reply->is_text("OK")) granted.push_back(node.get());
    }
    const Duration drift = flaw == Flaw::ignores_drift ? Duration() : redis::drift_of(request.ttl);
    const bool in_time =
        flaw == Flaw::ignores_validity || env_.now() - started < request.ttl - drift;
    if (static_cast<int>(granted.size()) >= needed() && in_time) {
      lease.state = std::make_shared<LeaseState>(started + request.ttl - drift, started);
      return lease;
    }
    for (const auto& node : nodes_) {
      const bool heard = std::find(granted.begin(), granted.end(), node.get()) != granted.end();
      if (heard || flaw != Flaw::frees_only_what_it_heard_of) free(*node, lease);
    }
    return std::nullopt;
  }

  Env& env_;
  const WaitPolicy waiting_;
  std::vector<std::unique_ptr<redis::Connection>> nodes_;
};

template <Flaw flaw>
const Descriptor& lock_with() {
  static const Descriptor lock{
      .name = "plain-redlock",
      .backend = "redis",
      .acquire_commands = {"SET", "EVALSHA release_if_token"},
      .release_commands = {"EVALSHA release_if_token"},
      .traits = {.expiry = Expiry::ttl, .release_check = OwnerCheck::atomic, .nodes = 2},
      .make = construct<PlainRedlock<flaw>>,
  };
  return lock;
}

struct Rejection {
  std::string_view property;
  const Descriptor& lock;
  std::string_view reason;  ///< none: it is sound
};

std::ostream& operator<<(std::ostream& out, const Rejection& rejection) {
  return out << rejection.property;
}

class BrokenRedlocks : public testing::TestWithParam<Rejection> {};

TEST_P(BrokenRedlocks, AreRejected) {
  const Property property = find_property(GetParam().property);
  ASSERT_TRUE(property.applies(GetParam().lock)) << "it would never be asked";
  const std::string said = property.check(GetParam().lock);
  if (GetParam().reason.empty()) {
    EXPECT_EQ(said, "");
  } else {
    EXPECT_NE(said.find(GetParam().reason), std::string::npos) << "it said: \"" << said << "\"";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenRedlocks,
    testing::Values(Rejection{"ValidityLeavesRoomForDrift", lock_with<Flaw::ignores_drift>(),
                              "no room for drift"},
                    Rejection{"NoLeaseIsPastItsValidity", lock_with<Flaw::ignores_validity>(),
                              "past its validity"},
                    Rejection{"VotesUnheardAreTakenBack",
                              lock_with<Flaw::frees_only_what_it_heard_of>(), "nobody heard"},
                    Rejection{"MinorityGrantsNothing", lock_with<Flaw::minority_wins>(),
                              "gave acquired"}));

// So that it is for the flaw that each of them is rejected.
INSTANTIATE_TEST_SUITE_P(
    Sound, BrokenRedlocks,
    testing::Values(Rejection{"ValidityLeavesRoomForDrift", lock_with<Flaw::none>(), ""},
                    Rejection{"NoLeaseIsPastItsValidity", lock_with<Flaw::none>(), ""},
                    Rejection{"VotesUnheardAreTakenBack", lock_with<Flaw::none>(), ""},
                    Rejection{"MinorityGrantsNothing", lock_with<Flaw::none>(), ""}));

}  // namespace
}  // namespace lockbench::test

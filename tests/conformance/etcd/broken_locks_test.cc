#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "strategies/etcd/client/messages.h"
#include "strategies/etcd/lock.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"

namespace lockbench::test {
namespace {

using etcd::Place;
using etcd::Standing;

/// The plainest queue of etcd keys, which each broken lock is but for its flaw.
class PlainQueue : public etcd::LeaseQueueLock {
 public:
  using LeaseQueueLock::LeaseQueueLock;

 protected:
  virtual etcd::LeaseId lease_of(const Place& place) { return place.session->leases.front(); }

  Looked enter(Place& place, const std::stop_token& stop) override {
    const etcd::Txn txn{
        .then = {etcd::put(own_key(place), lease_of(place)), etcd::newest(place.lock + "/", 2)}};
    const auto result = etcd().transact(place.lock, txn, stop);
    if (!result) return tl::unexpected(result.error());
    if (!*result) return std::nullopt;
    place.revision = (*result)->revision;
    const auto& before = (*result)->found.at(1);
    Standing standing{.fencing = static_cast<std::uint64_t>(place.revision)};
    standing.granted = before.size() < 2;
    if (!standing.granted) standing.behind = before[1].name;
    return standing;
  }

  /// What was waited for has gone: that must be the holder.
  Looked look(const Place& place, const std::stop_token&) override {
    return Standing{.granted = true, .fencing = static_cast<std::uint64_t>(place.revision)};
  }

  StoreResult<bool> leave(const Place& place, const std::stop_token& stop) override {
    return etcd().remove_key(place.lock, own_key(place), stop).map([](std::int64_t deleted) {
      return deleted > 0;
    });
  }

  static std::string own_key(const Place& place) { return place.lock + "/" + place.token; }
};

/// Its contenders belong to no session.
struct Leaseless : PlainQueue {
  using PlainQueue::PlainQueue;
  etcd::LeaseId lease_of(const Place&) override { return 0; }
};

/// Leases that hear of nothing.
struct Deaf : LockStrategy {
  explicit Deaf(const Context& context) : heedful(context) {}
  StoreResult<void> connect() override { return heedful.connect(); }
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = heedful.acquire(request);
    if (result.lease) result.lease->state = std::make_shared<LeaseState>(TimePoint::max());
    return result;
  }
  ReleaseResult release(const Lease& lease) override { return heedful.release(lease); }
  RenewResult renew(const Lease& lease, Duration ttl) override { return heedful.renew(lease, ttl); }
  PlainQueue heedful;
};

struct Rejection {
  std::string_view property;
  std::unique_ptr<LockStrategy> (*make)(const Context&);
  std::string_view reason;
  bool claims_lock_delay = false;
};

std::ostream& operator<<(std::ostream& out, const Rejection& rejection) {
  return out << rejection.reason;
}

const std::vector<Rejection>& all_rejections() {
  static const std::vector<Rejection> rejections{
      {"DeadPredecessorHandsNothingOn", construct<PlainQueue>, "what another holds"},
      {"StoppedHolderIsSucceededInTime", construct<PlainQueue>, "too soon", true},
      {"StoppedHolderIsSucceededInTime", construct<Deaf>, "lease was valid"},
      {"RevokedSessionIsLearnedOf", construct<Deaf>, "does not know"},
      {"NothingStaysForEver", construct<Leaseless>, "would stay for ever"},
      {"LateCreationLeavesNoContender", construct<Leaseless>, "is left in the queue"}};
  return rejections;
}

class BrokenEtcdLocks : public testing::TestWithParam<Rejection> {};

TEST_P(BrokenEtcdLocks, AreRejected) {
  Descriptor lock{.name = "broken", .backend = "etcd", .make = GetParam().make};
  lock.traits.expiry = Expiry::session;
  lock.traits.lock_delay = GetParam().claims_lock_delay;
  const Property property = find_property(GetParam().property);
  ASSERT_TRUE(property.applies(lock)) << "it would never be asked";
  const Impatience waits_in_vain;
  const std::string said = property.check(lock);
  EXPECT_NE(said.find(GetParam().reason), std::string::npos) << "said: \"" << said << "\"";
}

INSTANTIATE_TEST_SUITE_P(All, BrokenEtcdLocks, testing::ValuesIn(all_rejections()));

TEST(EtcdProperties, CanAllFail) {
  for (const Property& property : own_properties()) {
    const bool shown = std::ranges::any_of(all_rejections(), [&](const Rejection& rejection) {
      return rejection.property == property.name;
    });
    EXPECT_TRUE(shown) << property.name << " has rejected no lock yet";
  }
}

}  // namespace
}  // namespace lockbench::test

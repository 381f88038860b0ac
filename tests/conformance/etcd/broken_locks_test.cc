#include "strategies/etcd/client/messages.h"
#include "strategies/etcd/lock.h"
#include "tests/conformance/common/rejection.h"

namespace lockbench::test {
namespace {

using etcd::Place;
using etcd::Standing;

/// The simplest queue of etcd keys; every broken lock is this one plus a flaw.
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

  /// The awaited key is gone: it must have been the holder's.
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

/// A queue whose contenders belong to no session.
struct Leaseless : PlainQueue {
  using PlainQueue::PlainQueue;
  etcd::LeaseId lease_of(const Place&) override { return 0; }
};

/// A lock whose leases never learn of a loss.
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

Descriptor declared(std::unique_ptr<LockStrategy> (*make)(const Context&),
                    bool lock_delay = false) {
  Descriptor lock{.name = "broken", .backend = "etcd", .make = make};
  lock.traits.expiry = Expiry::session;
  lock.traits.lock_delay = lock_delay;
  return lock;
}

std::vector<Rejection> all_rejections() {
  const Descriptor plain = declared(construct<PlainQueue>);
  const Descriptor deaf = declared(construct<Deaf>), leaseless = declared(construct<Leaseless>);
  return {{"DeadPredecessorHandsNothingOn", plain, "what another holds"},
          {"StoppedHolderIsSucceededInTime", declared(construct<PlainQueue>, true), "too soon"},
          {"StoppedHolderIsSucceededInTime", deaf, "lease was valid"},
          {"RevokedSessionIsLearnedOf", deaf, "does not know"},
          {"NothingUndeclaredStaysForEver", leaseless, "would stay for ever"},
          {"LateCreationLeavesNoContender", leaseless, "is left in the queue"}};
}

class BrokenEtcdLocks : public testing::TestWithParam<Rejection> {};

TEST_P(BrokenEtcdLocks, AreRejected) { expect_rejection(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, BrokenEtcdLocks, testing::ValuesIn(all_rejections()), rejection_name);

TEST(EtcdProperties, CanAllFail) { expect_all_can_fail(own_properties(), all_rejections()); }

}  // namespace
}  // namespace lockbench::test

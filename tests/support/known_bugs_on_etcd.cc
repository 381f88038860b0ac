#include "strategies/etcd/client/messages.h"
#include "strategies/etcd/lock.h"
#include "tests/support/known_bugs.h"

namespace lockbench::test {
namespace {

/// Goes on after the end of its lease for longer than the store keeps others out.
struct TrustsItsGrace : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (!result.lease) return result;
    constexpr std::chrono::seconds kGrace{5};
    const LeaseState& state = *result.lease->state;
    result.lease->state =
        std::make_shared<LeaseState>(state.valid_until() + kGrace, state.confirmed_at());
    return result;
  }
};

/// etcd's mutex. As it was, it did not look whether its own place is still there when none is
/// before it any more.
template <bool kLooks>
class EtcdsMutex : public etcd::LeaseQueueLock {
 public:
  EtcdsMutex(std::string_view /*name*/, const Context& context) : LeaseQueueLock(context) {}

 protected:
  Looked enter(etcd::Place& place, const std::stop_token& stop) override {
    const etcd::Txn txn{
        .then = {etcd::put(own_key(place), place.session->leases.front()), before(place)}};
    const auto result = etcd().transact(place.lock, txn, stop);
    if (!result) return tl::unexpected(result.error());
    if (!*result) return std::nullopt;
    place.revision = (*result)->revision;
    // Its own is among them.
    const auto& keys = (*result)->found.at(1);
    etcd::Standing standing{.granted = keys.size() < 2};
    standing.fencing = static_cast<std::uint64_t>(place.revision);
    if (!standing.granted) standing.behind = keys[1].name;
    return standing;
  }
  Looked look(const etcd::Place& place, const std::stop_token& stop) override {
    const etcd::Txn txn{.then = {before(place), etcd::get(own_key(place))}};
    const auto result = etcd().transact(place.lock, txn, stop);
    if (!result) return tl::unexpected(result.error());
    if (!*result) return std::nullopt;
    if (kLooks && (*result)->found.at(1).empty()) return etcd::Standing{.there = false};
    const auto& keys = (*result)->found.front();
    etcd::Standing standing{.granted = keys.empty()};
    standing.fencing = static_cast<std::uint64_t>(place.revision);
    if (!standing.granted) standing.behind = keys[0].name;
    // The caller is told that it has the lock, which lasts for a TTL.
    const TimePoint now = env().now();
    if (standing.granted && !kLooks) {
      place.session->state = std::make_shared<LeaseState>(now + place.session->ttl, now);
    }
    return standing;
  }
  StoreResult<bool> leave(const etcd::Place& place, const std::stop_token& stop) override {
    return etcd().remove_key(place.lock, own_key(place), stop).map([](std::int64_t deleted) {
      return deleted > 0;
    });
  }

 private:
  static std::string own_key(const etcd::Place& place) { return place.lock + "/" + place.token; }
  /// The latest two places, or, once it has its own, the one before that.
  static etcdserverpb::RequestOp before(const etcd::Place& place) {
    return place.revision == 0 ? etcd::newest(place.lock + "/", 2)
                               : etcd::newest(place.lock + "/", 1, place.revision - 1);
  }
};

}  // namespace

std::vector<KnownBug> bugs_on_etcd() {
  return {{.name = "LeaseGoneWhileWaiting",
           .what = "a lock is granted to a session that has ended while it waited",
           .where = "etcd 11456",
           .oracle = simulate::Oracle::overlap,
           .with = like<EtcdsMutex<false>>("etcd"),
           .without = like<EtcdsMutex<true>>("etcd")},
          {.name = "LeaseGoneWhileHolding",
           .what = "a holder that is cut off from the store goes on after its lease",
           .where = "etcd 10811",
           .oracle = simulate::Oracle::overlap,
           .with = like<NeverDoubts>("etcd"),
           .without = registered("etcd")},
          {.name = "UnalignedLeases",
           .what = "a client's grace period is longer than the store's lock-delay",
           .where = "Burrows, The Chubby lock service",
           .oracle = simulate::Oracle::overlap,
           .seed = 67,
           .with = like<TrustsItsGrace>("chubby"),
           .without = registered("chubby")}};
}
}  // namespace lockbench::test

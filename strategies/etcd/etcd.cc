#include "strategies/etcd/client/messages.h"
#include "strategies/etcd/lock.h"
#include "strategies/registry.h"

namespace lockbench::etcd {
namespace {

/// The mutex of etcd's own client: the client with the oldest key of the lock's prefix holds it.
class Etcd : public LeaseQueueLock {
 public:
  using LeaseQueueLock::LeaseQueueLock;

 protected:
  Looked enter(Place& place, const std::stop_token& stop) override {
    const Txn txn{
        .conditions = {absent(own_key(place))},
        // The newest key is its own; the next is its predecessor.
        .then = {put(own_key(place), place.session->leases.front()), newest(queue(place), 2)}};
    const auto result = etcd().transact(place.lock, txn, stop);
    if (!result) return tl::unexpected(result.error());
    if (!*result || !(*result)->succeeded) return std::nullopt;
    const std::vector<Key>& newest_two = (*result)->found.at(1);
    if (newest_two.empty() || newest_two.front().name != own_key(place)) {
      return etcd().not_understood("Txn", "the key that it created");
    }
    place.revision = (*result)->revision;
    return standing_in(place, **result, 1);
  }

  Looked look(const Place& place, const std::stop_token& stop) override {
    const Txn txn{.then = {get(own_key(place)), newest(queue(place), 1, place.revision - 1)}};
    const auto result = etcd().transact(place.lock, txn, stop);
    if (!result) return tl::unexpected(result.error());
    if (!*result || (*result)->found.at(0).empty()) return Standing{.there = false};
    return standing_in(place, **result, 0);
  }

  StoreResult<bool> leave(const Place& place, const std::stop_token& stop) override {
    return etcd().remove_key(place.lock, own_key(place), stop).map([](std::int64_t deleted) {
      return deleted > 0;
    });
  }

 private:
  static std::string queue(const Place& place) { return place.lock + "/"; }
  static std::string own_key(const Place& place) { return queue(place) + place.token; }

  /// Behind the key at `index` among the finds of the second operation, if there is one.
  static Standing standing_in(const Place& place, const TxnResult& result, std::size_t index) {
    Standing standing{.fencing = static_cast<std::uint64_t>(place.revision)};
    const std::vector<Key>& before = result.found.at(1);
    standing.granted = before.size() <= index;
    if (!standing.granted) standing.behind = before[index].name;
    return standing;
  }
};

const Registration etcd(with_known_hazards({
    .name = "etcd",
    .backend = "etcd",
    .summary = "A key per contender, on the client's lease: the oldest holds, each watches its "
               "predecessor",
    .acquire_commands =
        {"LeaseGrant ttl (once; then kept alive by LeaseKeepAlive, for all clients)",
         "Txn create key/token if absent, and get its predecessor",
         "Watch the predecessor (deleted)", "Range the predecessor (once it is watched)",
         "Txn get key/token and its predecessor", "DeleteRange key/token (giving up)"},
    .release_commands = {"DeleteRange key/token"},
    .source = "etcd's client/v3/concurrency, mutex.go and session.go",
    .typical = true,
    .libraries = {{"Java", "jetcd Lock", "Lease.grant({ttl}) and keepAlive", Reentry::uncounted},
                  {"Go", "go.etcd.io/etcd/client/v3/concurrency",
                   "NewSession(WithTTL({ttl})), NewMutex", Reentry::uncounted}},
    .traits = {.expiry = Expiry::session,
               .release_check = OwnerCheck::atomic,
               .fencing = true,
               .fair = true,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    .make = construct<Etcd>,
}));

}  // namespace
}  // namespace lockbench::etcd

#include "strategies/etcd/client/txn.h"
#include "strategies/etcd/lock.h"
#include "strategies/registry.h"

namespace lockbench::etcd {
namespace {

/// The mutex of etcd's own client: whoever has the oldest key below the lock's holds it.
class Etcd : public QueuedLock {
 public:
  using QueuedLock::QueuedLock;

 protected:
  Looked enter(Place& place, const std::stop_token& stop) override {
    const std::string own = own_key(place);
    etcdserverpb::TxnRequest request;
    require_created(request, own, etcdserverpb::Compare::EQUAL, 0);
    add_put(*request.mutable_success(), own, place.session->own().id());
    // The youngest is its own, the next the one before it.
    add_youngest(*request.mutable_success(), queue(place), 2);
    const auto answer = etcd().transact("Txn", place.lock, request, stop);
    if (!answer) return tl::unexpected(answer.error());
    if (!*answer || !(*answer)->succeeded()) return std::nullopt;
    place.revision = (*answer)->header().revision();
    return stands(place, **answer, 1);
  }

  Looked look(const Place& place, const std::stop_token& stop) override {
    etcdserverpb::TxnRequest request;
    add_get(*request.mutable_success(), own_key(place));
    add_youngest(*request.mutable_success(), queue(place), 1, place.revision - 1);
    const auto answer = etcd().transact("Txn", place.lock, request, stop);
    if (!answer) return tl::unexpected(answer.error());
    if (!*answer || found(**answer, 0).empty()) return Standing{.there = false};
    return stands(place, **answer, 0);
  }

  StoreResult<bool> leave(const Place& place, const std::stop_token& stop) override {
    etcdserverpb::DeleteRangeRequest request;
    request.set_key(own_key(place));
    const auto deleted = etcd().remove(place.lock, request, stop);
    if (!deleted) return tl::unexpected(deleted.error());
    return *deleted > 0;
  }

 private:
  static std::string queue(const Place& place) { return place.lock + "/"; }
  static std::string own_key(const Place& place) { return queue(place) + place.token; }

  /// Behind the key at `index` of those that the second operation found, if there are so many.
  static Standing stands(const Place& place, const etcdserverpb::TxnResponse& answer, int index) {
    Standing standing{.fencing = static_cast<std::uint64_t>(place.revision)};
    const auto& before = found(answer, 1);
    standing.granted = before.size() <= index;
    if (!standing.granted) standing.behind = before[index].key();
    return standing;
  }
};

const Registration registration(Descriptor{
    .name = "etcd",
    .backend = "etcd",
    .summary = "A key per contender, on the client's lease: the oldest holds, each watches the one "
               "before",
    .acquire_commands =
        {"LeaseGrant ttl (once; then kept alive by LeaseKeepAlive, for all clients)",
         "Txn create key/token if absent, and get the one before", "Watch the one before (deleted)",
         "Range the one before (once it is watched)", "Txn get key/token and the one before",
         "DeleteRange key/token (giving up)"},
    .release_commands = {"DeleteRange key/token"},
    .source = "etcd's client/v3/concurrency, mutex.go and session.go",
    .traits = {.expiry = Expiry::session,
               .release_check = OwnerCheck::atomic,
               .fencing = true,
               .fair = true,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    .hazards = with_session_hazards({}),
    .make = construct<Etcd>,
});

}  // namespace
}  // namespace lockbench::etcd

#include <algorithm>

#include "strategies/etcd/chubby_keys.h"
#include "strategies/etcd/client/txn.h"
#include "strategies/etcd/jeopardy.h"
#include "strategies/etcd/lock.h"
#include "strategies/registry.h"

namespace lockbench::etcd {
namespace {

/// How often a client in jeopardy looks whether it is safe again.
constexpr Duration kJeopardyTick = std::chrono::milliseconds(20);

/// Chubby's contract on etcd's replicated store. A session has two leases, and who holds the lock
/// has two keys: his place in the queue goes with the session, his guard a lock-delay later. Nobody
/// is granted the lock past a guard that excludes him, and only an orderly release removes one: so
/// the delay follows failures alone, on the store's clock. The generation is the revision in which
/// the guard was made.
class Chubby : public QueuedLock {
 public:
  explicit Chubby(const Context& context)
      : QueuedLock(context), lock_delay_(context.options.lock_delay) {}

 protected:
  std::vector<Duration> lease_ttls(Duration ttl) const override {
    // In seconds, as the store counts, so that the difference is not less than the delay.
    const Duration whole = std::chrono::seconds(ceil_seconds(ttl));
    return {whole, whole + lock_delay_};
  }

  /// In jeopardy it waits for the session's fate to be known: as long as the lock-delay nobody else
  /// can have what is held on it.
  bool usable(const Session& session, const AcquireRequest& request) override {
    // Bounded by the grace period, after which the session counts as expired.
    while (true) {
      const TimePoint now = env().now();
      const SessionStanding standing = standing_of(session.state(), now, lock_delay_);
      if (standing == SessionStanding::safe) return true;
      if (standing == SessionStanding::expired) {
        session.state().mark_lost(now);
        return false;
      }
      if (now >= request.deadline) return false;
      const TimePoint next = std::min(request.deadline, now + kJeopardyTick);
      if (env().wait(nullptr, next, request.stop) == WaitResult::stopped) return false;
    }
  }

  Looked enter(Place& place, const std::stop_token& stop) override {
    etcdserverpb::TxnRequest request;
    const bool shares = place.mode == Mode::shared;
    // At once if nobody is in its way; else it queues.
    if (shares) {
      require_none(request, queue_of(place.lock, Mode::exclusive));
      require_none(request, guards_of(place.lock, Mode::exclusive));
    } else {
      require_none(request, place.lock + "/");
    }
    add_put(*request.mutable_success(), own_key(place), place.session->own().id());
    add_guard(request, place);
    add_put(*request.mutable_failure(), own_key(place), place.session->own().id());
    // The youngest of an exclusive client's queue is its own.
    add_youngest(*request.mutable_failure(), rivals(place), shares ? 1 : 2);
    add_youngest(*request.mutable_failure(), guards(place), 1);
    const auto answer = etcd().transact("Txn", place.lock, request, stop);
    if (!answer) return tl::unexpected(answer.error());
    if (!*answer) return std::nullopt;
    place.revision = (*answer)->header().revision();
    return stands(**answer, shares ? 0 : 1);
  }

  Looked look(const Place& place, const std::stop_token& stop) override {
    // In an empty range etcd finds nothing that is younger either. One's own place sees to it that
    // there is something, unless the rivals stand in a queue of their own.
    if (place.mode == Mode::shared) {
      Looked looked = look_if(place, Rivals::none, stop);
      const bool younger_ones = looked && *looked && (*looked)->there && !(*looked)->granted &&
                                !(*looked)->behind.has_value();
      if (!younger_ones) return looked;
    }
    return look_if(place, Rivals::none_before, stop);
  }

  StoreResult<bool> leave(const Place& place, const std::stop_token& stop) override {
    etcdserverpb::TxnRequest request;
    // Whose session has failed must not end the delay that follows.
    require_created(request, own_key(place), etcdserverpb::Compare::GREATER, 0);
    add_delete(*request.mutable_success(), own_key(place));
    add_delete(*request.mutable_success(), guard(place));
    const auto answer = etcd().transact("Txn", place.lock, request, stop);
    if (!answer) return tl::unexpected(answer.error());
    return *answer && (*answer)->succeeded();
  }

 private:
  static std::string own_key(const Place& place) {
    return queue_of(place.lock, place.mode) + place.token;
  }
  static std::string guard(const Place& place) {
    return guards_of(place.lock, place.mode) + place.token;
  }
  /// Where those stand who exclude it: for who shares, the exclusive ones.
  static std::string rivals(const Place& place) {
    return place.mode == Mode::shared ? queue_of(place.lock, Mode::exclusive)
                                      : queue_of(place.lock);
  }
  static std::string guards(const Place& place) {
    return place.mode == Mode::shared ? guards_of(place.lock, Mode::exclusive)
                                      : guards_of(place.lock);
  }
  /// Who may not be there for the lock to be taken.
  enum class Rivals { none, none_before };

  Looked look_if(const Place& place, Rivals condition, const std::stop_token& stop) {
    etcdserverpb::TxnRequest request;
    require_created(request, own_key(place), etcdserverpb::Compare::EQUAL, place.revision);
    if (condition == Rivals::none) {
      require_none(request, rivals(place));
    } else {
      require_none_before(request, rivals(place), place.revision);
    }
    require_none(request, guards(place));
    add_get(*request.mutable_success(), own_key(place));
    add_guard(request, place);
    add_get(*request.mutable_failure(), own_key(place));
    add_youngest(*request.mutable_failure(), rivals(place), 1, place.revision - 1);
    add_youngest(*request.mutable_failure(), guards(place), 1);
    const auto answer = etcd().transact("Txn", place.lock, request, stop);
    if (!answer) return tl::unexpected(answer.error());
    if (!*answer || found(**answer, 0).empty()) return Standing{.there = false};
    return stands(**answer, 0);
  }

  static void add_guard(etcdserverpb::TxnRequest& request, const Place& place) {
    add_put(*request.mutable_success(), guard(place), place.session->leases.back().id());
  }

  /// Granted, or behind the rival at `index`, or behind a guard alone; or to be looked at again.
  static Standing stands(const etcdserverpb::TxnResponse& answer, int index) {
    Standing standing;
    if (answer.succeeded()) {
      standing.granted = true;
      standing.fencing = static_cast<std::uint64_t>(answer.header().revision());
      return standing;
    }
    const auto& before = found(answer, 1);
    const auto& guarding = found(answer, 2);
    if (before.size() > index) {
      standing.behind = before[index].key();
    } else if (!guarding.empty()) {
      standing.behind = guarding[0].key();
    }
    return standing;
  }

  const Duration lock_delay_;
};

const Registration registration(Descriptor{
    .name = "chubby",
    .backend = "etcd",
    .summary = "Chubby's contract on etcd: sessions with jeopardy, sequencers, shared mode, "
               "lock-delay",
    .acquire_commands =
        {"LeaseGrant ttl (once; then kept alive by LeaseKeepAlive, for all clients)",
         "LeaseGrant ttl + lock-delay (likewise)",
         "Txn if nobody is in the way create place and guard, else the place",
         "Watch the place, or the guard, in the way (deleted)",
         "Range what is in the way (once it is watched)",
         "Txn if nobody is in the way any more create the guard",
         "Txn if it is there delete the place (giving up)"},
    .release_commands = {"Txn if the place is there delete it and the guard"},
    .source = "Burrows, \"The Chubby lock service for loosely-coupled distributed systems\", 2006",
    .traits = {.expiry = Expiry::session,
               .release_check = OwnerCheck::atomic,
               .fencing = true,
               .fair = true,
               .shared = true,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    .hazards = with_session_hazards({}),
    .make = construct<Chubby>,
});

}  // namespace
}  // namespace lockbench::etcd

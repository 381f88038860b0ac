#include <algorithm>

#include "strategies/etcd/client/messages.h"
#include "strategies/etcd/lock.h"
#include "strategies/registry.h"

namespace lockbench::etcd {
namespace {

/// How often a client in jeopardy checks whether it is safe again.
constexpr Duration kJeopardyTick = std::chrono::milliseconds(20);

/// Chubby's contract on etcd's replicated store. A session has two leases, and a holder two keys:
/// its place in the queue, which ends with the session, and its guard, which ends a lock-delay
/// later. No client is granted the lock while there is a guard that excludes it, and only an
/// orderly release removes a guard: so the delay follows failures only, and is measured by the
/// store's clock. A sequencer is the key, the mode and the fencing number of a lease: the revision
/// in which its guard was created.
class Chubby : public LeaseQueueLock {
 public:
  explicit Chubby(const Context& context)
      : LeaseQueueLock(context), lock_delay_(context.options.lock_delay) {}

 protected:
  std::optional<Duration> outlasts_by() const override { return lock_delay_; }

  /// In jeopardy, waits until the session is safe or has expired: during the lock-delay no other
  /// client can be granted its locks.
  bool usable(const Session& session, const AcquireRequest& request) override {
    // Bounded by the grace period, after which the session counts as expired.
    while (true) {
      const TimePoint now = env().now();
      const SessionStanding standing = standing_of(*session.state, now, lock_delay_);
      if (standing == SessionStanding::safe) return true;
      if (standing == SessionStanding::expired) {
        session.state->mark_lost(now);
        return false;
      }
      if (now >= request.deadline) return false;
      const TimePoint next = std::min(request.deadline, now + kJeopardyTick);
      if (env().wait(nullptr, next, request.stop) == WaitResult::stopped) return false;
    }
  }

  Looked enter(Place& place, const std::stop_token& stop) override {
    const bool shares = place.mode == Mode::shared;
    const LeaseId lease = place.session->leases.front();
    // Granted immediately if nothing excludes it; otherwise it queues.
    const Txn txn{
        .conditions = shares ? std::vector{none_below(rivals(place)), none_below(guards(place))}
                             : std::vector{none_below(place.lock + "/")},
        .then = {put(own_key(place), lease), put_guard(place)},
        // The newest key of an exclusive client's queue is its own.
        .otherwise = {put(own_key(place), lease), newest(rivals(place), shares ? 1 : 2),
                      newest(guards(place), 1)}};
    const auto result = etcd().transact(place.lock, txn, stop);
    if (!result) return tl::unexpected(result.error());
    if (!*result) return std::nullopt;
    place.revision = (*result)->revision;
    return standing_in(**result, shares ? 0 : 1);
  }

  Looked look(const Place& place, const std::stop_token& stop) override {
    // An exclusive client's range of rivals is never empty, as it contains the client's own place.
    // A shared client's may be, and on an empty range "none before" cannot hold.
    if (place.mode == Mode::shared) {
      Looked looked = look_if(place, none_below(rivals(place)), stop);
      const bool only_newer_rivals = looked && *looked && (*looked)->there && !(*looked)->granted &&
                                     !(*looked)->behind.has_value();
      if (!only_newer_rivals) return looked;
    }
    return look_if(place, none_below_before(rivals(place), place.revision), stop);
  }

  StoreResult<bool> leave(const Place& place, const std::stop_token& stop) override {
    // A client whose session has ended must not end the delay that follows.
    const Txn txn{.conditions = {exists(own_key(place))},
                  .then = {remove(own_key(place)), remove(guard(place))}};
    return etcd().transact(place.lock, txn, stop).map([](const auto& result) {
      return result && result->succeeded;
    });
  }

 private:
  static std::string own_key(const Place& place) {
    return queue_of(place.lock) + letter_of(place.mode) + place.token;
  }
  static std::string guard(const Place& place) {
    return guards_of(place.lock) + letter_of(place.mode) + place.token;
  }
  /// The places that may exclude this one; for a shared request, only exclusive places.
  static std::string rivals(const Place& place) {
    return queue_of(place.lock) + (place.mode == Mode::shared ? letter_of(Mode::exclusive) : "");
  }
  static std::string guards(const Place& place) {
    return guards_of(place.lock) + (place.mode == Mode::shared ? letter_of(Mode::exclusive) : "");
  }
  static etcdserverpb::RequestOp put_guard(const Place& place) {
    return put(guard(place), place.session->leases.back());
  }

  /// Takes the lock if its place is there, no guard excludes it and the condition holds.
  Looked look_if(const Place& place, const etcdserverpb::Compare& no_rivals,
                 const std::stop_token& stop) {
    const Txn txn{.conditions = {created_in(own_key(place), place.revision), no_rivals,
                                 none_below(guards(place))},
                  .then = {get(own_key(place)), put_guard(place)},
                  .otherwise = {get(own_key(place)), newest(rivals(place), 1, place.revision - 1),
                                newest(guards(place), 1)}};
    const auto result = etcd().transact(place.lock, txn, stop);
    if (!result) return tl::unexpected(result.error());
    if (!*result || (*result)->found.at(0).empty()) return Standing{.there = false};
    return standing_in(**result, 0);
  }

  /// Granted, or behind the rival at `index`, or behind a guard only; otherwise it has to look
  /// again.
  static Standing standing_in(const TxnResult& result, std::size_t index) {
    Standing standing;
    if (result.succeeded) {
      standing.granted = true;
      standing.fencing = static_cast<std::uint64_t>(result.revision);
      return standing;
    }
    const std::vector<Key>& before = result.found.at(1);
    const std::vector<Key>& guarding = result.found.at(2);
    if (before.size() > index) {
      standing.behind = before[index].name;
    } else if (!guarding.empty()) {
      standing.behind = guarding[0].name;
    }
    return standing;
  }

  const Duration lock_delay_;
};

const Registration chubby(with_known_hazards({
    .name = "chubby",
    .backend = "etcd",
    .summary = "Chubby's contract on etcd: sessions with jeopardy, sequencers, shared mode, "
               "lock-delay",
    .acquire_commands =
        {"LeaseGrant ttl (once; then kept alive by LeaseKeepAlive, for all clients)",
         "LeaseGrant ttl + lock-delay (likewise)",
         "Txn if nothing blocks create place and guard, else the place",
         "Watch the blocking place or guard (deleted)",
         "Range the blocking key (once it is watched)",
         "Txn if nothing blocks any more create the guard",
         "Txn if it is there delete the place (giving up)"},
    .release_commands = {"Txn if the place is there delete it and the guard"},
    .source = "Burrows, \"The Chubby lock service for loosely-coupled distributed systems\", 2006",
    .traits = {.expiry = Expiry::session,
               .release_check = OwnerCheck::atomic,
               .lock_delay = true,
               .fencing = true,
               .fair = true,
               .shared = true,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    .make = construct<Chubby>,
}));

}  // namespace
}  // namespace lockbench::etcd

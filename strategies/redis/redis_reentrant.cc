#include <fmt/format.h>

#include <map>

#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// The most keys with lost answers to remember; others end with their TTL.
constexpr std::size_t kMaxDoubts = 1024;

/// Identifies this process among all others.
struct ProcessId {
  std::string text;
};

/// A lock that its owner may take again: a hash with a count per owner (Redisson). The strategies
/// differ in the owner's name and in how waiting clients learn of a release.
class ReentrantLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    latest_ttl_ = request.ttl;
    (void)settle_doubts(lease, request.stop);  // after a failure, the release tries again
    begin_validity();
    const TimePoint asked_at = env().now();
    const Script& script = scripts::reentrant_acquire;
    auto tried = redis().read(
        kNilOrTimeLeft, script.name,
        run(script, lease.key, {lease.token, milliseconds(request.ttl)}, request.stop));
    if (tried && tried->granted) {
      Held& held = held_[lease.key];
      ++held.count;
      held.ttl = request.ttl;
    }
    if (!tried) curtail(lease, tried.error(), end_of(asked_at, request.ttl));
    return tried;
  }

 protected:
  /// The store has one lock, and so one TTL, for all leases: an inner acquisition changes the
  /// validity of the outer ones too.
  std::shared_ptr<LeaseState> state_of(const Lease& lease, TimePoint end,
                                       TimePoint asked_at) override {
    auto& state = held_[lease.key].state;
    if (state && state->valid_at(asked_at)) {
      state->extend(end, asked_at);
    } else {
      state = SingleNodeLock::state_of(lease, end, asked_at);
    }
    return state;
  }
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    const auto held = held_.find(lease.key);
    const Duration ttl = held == held_.end() ? latest_ttl_ : held->second.ttl;
    const auto state = held == held_.end() ? nullptr : held->second.state;
    const bool goes_on = held != held_.end() && --held->second.count > 0;
    if (held != held_.end() && !goes_on) held_.erase(held);
    // Lost before the client took the lock anew, which the release must leave to the new leases.
    if (goes_on && lease.state && lease.state != state) {
      doubt(lease);  // the server counts it if it knew nothing of the end yet
      return false;
    }
    const TimePoint asked_at = env().now();
    const auto released = release_once(lease, ttl, stop);
    if (!released) {
      doubt(lease);
      curtail(lease, released.error(), end_of(asked_at, ttl));
      return tl::unexpected(released.error());
    }
    if (*released == Released::counted_down) {
      // The script gives the lock its TTL again.
      if (state) state->extend(end_of(asked_at, ttl), asked_at);
      // This client does not hold it any more, so the server must not count it either.
      if (auto settled = settle_doubts(lease, stop); !settled) {
        return tl::unexpected(std::move(settled.error()));
      }
    }
    return *released != Released::not_held;
  }

  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override {
    if (held_.contains(lease.key)) {
      doubt(lease);  // whether it was counted once more is unknown
      return false;
    }
    const auto released = release_once(lease, latest_ttl_, stop);
    if (!released) doubt(lease);
    return released.map([](Released result) { return result == Released::freed; });
  }

  StoreResult<bool> decline(const Lease& lease, const std::stop_token& stop) override {
    return give_back(lease, stop);
  }
  std::optional<RenewalProtocol> renewal_protocol() const override {
    return RenewalProtocol{.script = &scripts::reentrant_renew};
  }
  /// The release script publishes when it frees the lock.
  bool release_notifies() const override { return true; }

  /// Runs one of the lock's scripts.
  virtual StoreResult<Reply> run(const Script& script, std::string_view key, WordList args,
                                 const std::stop_token& stop) {
    return redis().call(script, {key}, args, stop);
  }

  enum class Released { freed, counted_down, not_held };
  /// Takes one off the server's count, regardless of this client's own.
  StoreResult<Released> release_once(const Lease& lease, Duration ttl,
                                     const std::stop_token& stop) {
    static constexpr Form<Released> kForm{
        "0, 1 or nil", [](const Reply& reply) -> std::optional<Released> {
          if (reply.is_nil()) return Released::not_held;
          const auto freed = number_in(reply, 0, 1);
          if (!freed) return std::nullopt;
          return *freed == 1 ? Released::freed : Released::counted_down;
        }};
    const std::string left = milliseconds(ttl), channel = channel_of(lease.key);
    const Script& script = notifies() && on_cluster() ? scripts::reentrant_release_sharded
                                                      : scripts::reentrant_release;
    return redis().read(kForm, script.name,
                        notifies() ? run(script, lease.key, {lease.token, left, channel}, stop)
                                   : run(script, lease.key, {lease.token, left}, stop));
  }

 private:
  struct Held {
    int count = 0;
    Duration ttl{};
    std::shared_ptr<LeaseState> state{};  ///< of all of its leases
  };

  static std::string milliseconds(Duration ttl) { return std::to_string(ceil_milliseconds(ttl)); }

  /// After a failure: the script may have given the lock, if the client still holds it, a TTL that
  /// ends then.
  void curtail(const Lease& lease, const StoreError& error, TimePoint end) {
    const bool may_have_run =
        error.kind == StoreError::Kind::unanswered || error.kind == StoreError::Kind::refused;
    const auto held = held_.find(lease.key);
    if (!may_have_run || held == held_.end() || !held->second.state) return;
    LeaseState& state = *held->second.state;
    if (end < state.valid_until()) state.extend(end, state.confirmed_at());
  }

  /// Remembers that the server may count this lock once more than this client.
  void doubt(const Lease& lease) {
    if (doubts_.size() < kMaxDoubts || doubts_.contains(lease.key)) ++doubts_[lease.key];
  }

  /// Releases grants that the server may still count for a lock that this client does not hold.
  StoreResult<void> settle_doubts(const Lease& lease, const std::stop_token& stop) {
    const auto doubts = doubts_.find(lease.key);
    if (doubts == doubts_.end() || held_.contains(lease.key)) return {};
    // One by one, as another client may have the same owner name (redis-reentrant).
    for (bool counted = true; counted && doubts->second > 0; --doubts->second) {
      const auto left = release_once(lease, latest_ttl_, stop);
      if (!left) return tl::unexpected(left.error());
      counted = *left == Released::counted_down;
    }
    doubts_.erase(doubts);
    return {};
  }

  std::map<std::string, Held> held_;
  std::map<std::string, int> doubts_;  ///< lost answers by key
  Duration latest_ttl_{};              ///< of the latest request
};

/// The owner is a number that is unique within its process only: clients of two processes may have
/// the same owner.
class Reentrant : public ReentrantLock {
 public:
  using ReentrantLock::ReentrantLock;

 protected:
  std::string make_token() override { return std::to_string(client()); }
};

const Registration redis_reentrant(on_redis({
    .name = "redis-reentrant",
    .summary =
        "A hash counts how often its owner, a thread number, took it; waits as long as PTTL says",
    .acquire_commands = {"EVALSHA reentrant_acquire key owner ttl"},
    .release_commands = {"EVALSHA reentrant_release key owner ttl"},
    .source = "common practice: Redisson's hash, with another owner",
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .reentrant = true,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .hazards = {{"owner-collision", HazardOutcome::double_grant}},
    .make = construct<Reentrant>,
}));

/// Redisson's lock on a single server (redis-reentrant-wait: on one with replicas): the owner is
/// unique among processes, a timer renews it, and a release notifies waiting clients.
class RedissonLock : public ReentrantLock {
 public:
  explicit RedissonLock(const Context& context, Replicas needed = Replicas::none)
      : ReentrantLock(context, needed),
        owner_(fmt::format("{}:{}", process_of(context).text, context.client)) {}

 protected:
  std::string make_token() override { return owner_; }

 private:
  static const ProcessId& process_of(const Context& context) {
    return context.services.get_or_make<ProcessId>(
        [&] { return std::make_shared<ProcessId>(ProcessId{random_token(context.env)}); });
  }

  const std::string owner_;
};

const Registration redis_reentrant_notify(on_redis({
    .name = "redis-reentrant-notify",
    .summary = "Redisson's lock on a single server: re-entrant, renewed, a release wakes waiting "
               "clients by PUBLISH",
    .acquire_commands = {"EVALSHA reentrant_acquire key owner ttl", "SUBSCRIBE key:released",
                         "UNSUBSCRIBE key:released"},
    .release_commands = {"EVALSHA reentrant_release key owner ttl key:released"},
    .renew_commands = {"EVALSHA reentrant_renew key owner ttl"},
    .source = "Redisson's RLock and LockPubSub",
    .typical = true,
    .libraries = {{"Java", "Redisson RLock", "lockWatchdogTimeout = {ttl}", Reentry::counted}},
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .reentrant = true,
               .renews = RenewalTiming{},
               .renewable = true,
               .waiting = WaitPolicy::notify(),
               .waiting_choices = {}},
    .make = construct<RedissonLock>,
}));

/// Redisson's lock on a server with replicas, as of August 2026 (CommandAsyncService.syncedEval and
/// RedissonBaseLock.handleNoSync): each script that acquires, renews or releases, even in vain, is
/// followed in the same batch by WAIT for all replicas, for up to slavesSyncTimeout. It fails only
/// if no replica acknowledged (checkLockSyncedSlaves). After such an acquisition Redisson releases
/// the lock once and throws. A release that fails like this has freed the lock on the primary; a
/// renewal is repeated at its next turn.
///
/// Differences: Redisson waits for the replicas that INFO shows as connected, and without any it
/// grants the lock; here their number is given. Its timeout is 1 s, here an option. Here a renewal
/// that no replica acknowledged does not prolong the lease.
class ReentrantWait : public RedissonLock {
 public:
  explicit ReentrantWait(const Context& context) : RedissonLock(context, Replicas::one) {}

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    auto tried = RedissonLock::try_acquire(request, lease);
    if (tried || !is_unsafe(tried.error())) return tried;
    const auto freed = release_once(lease, request.ttl, request.stop);
    if (freed || is_unsafe(freed.error())) return tried;
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, freed.error().message});
  }

 protected:
  StoreResult<Reply> run(const Script& script, std::string_view key, WordList args,
                         const std::stop_token& stop) override {
    auto reply = run_synced(script, false, key, args, stop);
    if (reply || reply.error().code != StoreError::Code::unknown_script) return reply;
    return run_synced(script, true, key, args, stop);
  }

 private:
  /// The script took effect on the primary, but no replica is known to have it.
  static bool is_unsafe(const StoreError& error) { return error.kind == StoreError::Kind::refused; }

  StoreResult<Reply> run_synced(const Script& script, bool in_full, std::string_view key,
                                WordList args, const std::stop_token& stop) {
    redis().queue(script, in_full, {key}, args);
    queue_wait();
    auto reply = redis().receive(stop);
    auto kept = receive_wait(stop);
    if (!reply || kept) return reply;
    // The script took effect.
    if (!is_unsafe(kept.error())) kept.error().kind = StoreError::Kind::unanswered;
    return tl::unexpected(std::move(kept.error()));
  }
};

const Registration redis_reentrant_wait(on_redis({
    .name = "redis-reentrant-wait",
    .summary = "Redisson's lock on a server with replicas: as redis-reentrant-notify, and WAIT "
               "after each script; refused if no replica acknowledges",
    .acquire_commands = {"EVALSHA reentrant_acquire key owner ttl", "WAIT replicas timeout",
                         "SUBSCRIBE key:released", "UNSUBSCRIBE key:released"},
    .release_commands = {"EVALSHA reentrant_release key owner ttl key:released",
                         "WAIT replicas timeout"},
    .renew_commands = {"EVALSHA reentrant_renew key owner ttl", "WAIT replicas timeout"},
    .source = "Redisson's RLock with checkLockSyncedSlaves",
    .libraries = {{"Java", "Redisson RLock with replicas",
                   "lockWatchdogTimeout = {ttl}, checkLockSyncedSlaves, slavesSyncTimeout",
                   Reentry::counted}},
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .reentrant = true,
               .renews = RenewalTiming{},
               .renewable = true,
               .needs_replicas = true,
               .waiting = WaitPolicy::notify(),
               .waiting_choices = {}},
    .make = construct<ReentrantWait>,
}));

}  // namespace
}  // namespace lockbench::redis

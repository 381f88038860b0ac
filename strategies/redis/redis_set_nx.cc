#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <set>

#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// SET NX PX: lock and TTL in one step. The release does not check the owner.
class SetNx : public UncheckedLock {
 public:
  using UncheckedLock::UncheckedLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& /*lease*/) override {
    return set_nx_px(request, "1");
  }
};

const Registration redis_set_nx(on_redis({
    .name = "redis-set-nx",
    .summary = "SET NX PX and DEL: after an overrun it deletes its successor's lock",
    .acquire_commands = {"SET key 1 NX PX ttl"},
    .release_commands = {"DEL key"},
    .source = "common practice",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "its release frees the lock of another client",
    .traits = {.release_check = OwnerCheck::none,
               .renew_check = OwnerCheck::none,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .make = construct<SetNx>,
}));

std::string host_and_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}:{}", host.data(), ::getpid());
}

/// SET NX PX with a value that names the owner. The release reads it, then deletes the key; between
/// these two steps another client may be granted the lock.
class SetNxCheck : public UncheckedLock {
 public:
  using UncheckedLock::UncheckedLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const auto set = set_nx_px(request, lease.token);
    if (set.value_or(false)) held_.insert(lease.key);
    return set;
  }

  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    held_.erase(lease.key);
    const auto mine = is_mine(lease, stop);
    return mine.value_or(false) ? UncheckedLock::give_back(lease, stop) : mine;
  }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    const auto mine = is_mine(lease, {});
    if (mine.value_or(false)) return UncheckedLock::renew(lease, ttl);
    return to_renew_result(mine, lease, env(), {}, {});
  }

 protected:
  /// All its acquisitions have the same token, so undoing one would release a lock that the client
  /// holds.
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override {
    if (held_.contains(lease.key)) return false;
    return give_back(lease, stop);
  }
  StoreResult<bool> decline(const Lease& lease, const std::stop_token& stop) override {
    return give_back(lease, stop);
  }

  /// The client's name, the same for all its acquisitions.
  std::string make_token() override { return fmt::format("{}:{}", process_, client()); }

 private:
  StoreResult<bool> is_mine(const Lease& lease, const std::stop_token& stop) {
    return redis().call(kTextOrNil, {"GET", lease.key}, stop).map([&](const auto& owner) {
      return owner == lease.token;
    });
  }

  const std::string process_ = host_and_process();
  std::set<std::string> held_;  ///< keys, until they are released
};

const Registration redis_set_nx_check(on_redis({
    .name = "redis-set-nx-check",
    .summary = "SET NX PX with host:process:thread, released by GET and then DEL: two steps",
    .acquire_commands = {"SET key token NX PX ttl"},
    .release_commands = {"GET key", "DEL key"},
    .source = "common practice",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "between its check and its release the lock can change hands",
    .traits = {.release_check = OwnerCheck::two_steps,
               .renew_check = OwnerCheck::two_steps,
               .waiting_choices = kWaitingChoices},
    .make = construct<SetNxCheck>,
}));

/// The textbook lock: SET NX PX with a random token, and a release that checks it in one step.
const Registration redis_set_nx_lua(on_redis({
    .name = "redis-set-nx-lua",
    .summary =
        "SET NX PX with a random token, released by a script that checks it: the textbook lock",
    .acquire_commands = {"SET key token NX PX ttl"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "redis.io \"Distributed Locks with Redis\"",
    .typical = true,
    .libraries =
        {{"Java", "Spring Integration RedisLockRegistry", "expireAfter = {ttl}", Reentry::counted},
         {"Go", "bsm/redislock", "Obtain(ctx, key, {ttl}, &Options{RetryStrategy: ...})"},
         {"Python", "redis-py Lock", "timeout = {ttl}, sleep, blocking_timeout"},
         {"JavaScript", "redlock with one client", "duration = {ttl}, retryDelay, retryCount"}},
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .make = construct<TokenLock>,
}));

/// The textbook lock with a timer that checks the owner and renews the lock while it is held: a
/// task may take longer than the TTL.
const Registration redis_watchdog(on_redis({
    .name = "redis-watchdog",
    .summary = "SET NX PX, renewed every third of the TTL by a script that checks the token",
    .acquire_commands = {"SET key token NX PX ttl"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .renew_commands = {"EVALSHA renew_if_token key token ttl"},
    .source = "Redisson's watchdog, on a plain key",
    .libraries = {{"Java", "Spring Integration RedisLockRegistry, from 6.4 on",
                   "expireAfter = {ttl}, setRenewalTaskScheduler", Reentry::counted},
                  {"Go", "bsm/redislock", "Obtain with {ttl}, and Refresh every third of it"},
                  {"Python", "python-redis-lock", "expire = {ttl}, auto_renewal = True"},
                  {"JavaScript", "redlock with one client",
                   "using() with duration = {ttl}, automaticExtensionThreshold"}},
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .renews = RenewalTiming{},
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .make = construct<TokenLock>,
}));

/// A common home-made guard thread: EXPIRE without checking the owner, first when a fifth of the
/// TTL is left.
class WatchdogNaive : public TokenLock {
 public:
  using TokenLock::TokenLock;

 protected:
  std::optional<RenewalProtocol> renewal_protocol() const override {
    return RenewalProtocol{.unchecked = "EXPIRE"};
  }
};

const Registration redis_watchdog_naive(on_redis({
    .name = "redis-watchdog-naive",
    .summary = "SET NX PX, renewed by EXPIRE (whole seconds) without checking the owner",
    .acquire_commands = {"SET key token NX PX ttl"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .renew_commands = {"EXPIRE key seconds"},
    .source = "common practice: a guard thread",
    .superseded_by = "redis-watchdog",
    .superseded_because = "it renews the lock of another client",
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::none,
               .renews = RenewalTiming{.first_share = 0.8, .share = 0.5},
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .make = construct<WatchdogNaive>,
}));

/// SET NX PX, then WAIT until the replicas have it too. If too few acknowledge in time, the lock is
/// released and the acquisition refused. A renewal counts only once the replicas have the new TTL.
class WaitForReplicas : public TokenLock {
 public:
  explicit WaitForReplicas(const Context& context) : TokenLock(context, Replicas::all) {}

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    auto taken = TokenLock::try_acquire(request, lease);
    if (!taken || !taken->granted) return taken;
    const StoreResult<void> kept = await_replicas(request.stop);
    if (kept) return taken;
    // After a lost answer acquire() releases the lock.
    if (kept.error().kind == StoreError::Kind::unanswered) return tl::unexpected(kept.error());
    const auto freed = give_back(lease, request.stop);
    if (freed) return tl::unexpected(kept.error());
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, freed.error().message});
  }
};

const Registration redis_wait(on_redis({
    .name = "redis-wait",
    .summary = "SET NX PX, then WAIT for the replicas; released and refused if too few acknowledge "
               "in time",
    .acquire_commands = {"SET key token NX PX ttl", "WAIT replicas timeout"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "redis.io \"WAIT\"",
    .typical = true,
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .needs_replicas = true,
               .waiting_choices = kWaitingChoices},
    .make = construct<WaitForReplicas>,
}));

}  // namespace
}  // namespace lockbench::redis

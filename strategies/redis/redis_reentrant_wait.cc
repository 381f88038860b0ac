#include "strategies/redis/client/answers.h"
#include "strategies/redis/client/replicas.h"
#include "strategies/redis/reentrant_lock.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// Redisson's lock on a server with replicas, as of August 2026 (CommandAsyncService.syncedEval and
/// RedissonBaseLock.handleNoSync): each script that acquires, renews or releases, also in vain, is
/// followed in the same batch by WAIT for all replicas, for up to slavesSyncTimeout. It fails only
/// if none of them has acknowledged: one is enough (checkLockSyncedSlaves). After an acquisition
/// Redisson then releases the lock once and throws. A release that fails like this has freed the
/// lock on the primary, and a renewal is repeated at its next turn.
///
/// Where this lock departs: Redisson waits for the replicas that are connected, by INFO, and where
/// there are none it grants the lock without any; here their number is given. Its timeout is 1 s,
/// here that of the option. A renewal that no replica acknowledged does not prolong the lease.
class ReentrantWait : public RedissonLock {
 public:
  explicit ReentrantWait(const Context& context)
      : RedissonLock(context), replicas_(context, false) {}

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    if (auto known = prepare(); !known) return tl::unexpected(known.error());
    auto tried = RedissonLock::try_acquire(request, lease);
    if (tried || !is_unsafe(tried.error())) return tried;
    const auto freed = release_once(lease, request.ttl, request.stop);
    if (freed || is_unsafe(freed.error())) return tried;
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, freed.error().message});
  }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    const TimePoint asked_at = env().now();
    const auto milliseconds = ceil_milliseconds(ttl);
    const Script& script = scripts::reentrant_renew;
    const auto renewed =
        redis().read(kFlag, script.name,
                     run(script, lease.key, {lease.token, std::to_string(milliseconds)}, {}));
    return to_renew_result(renewed, lease, env(), asked_at,
                           std::chrono::milliseconds(milliseconds));
  }

 protected:
  StoreResult<void> prepare() override { return replicas_.check(endpoint()); }

  std::optional<RenewalProtocol> renewal_protocol() const override {
    auto protocol = RedissonLock::renewal_protocol();
    protocol->wait = replicas_.wait();
    return protocol;
  }

  StoreResult<Reply> run(const Script& script, std::string_view key,
                         std::initializer_list<std::string_view> args,
                         const std::stop_token& stop) override {
    std::vector<std::string_view> words{"EVALSHA", script.sha1, "1", key};
    words.insert(words.end(), args);
    auto reply = run_synced(words, script.name, stop);
    if (reply || reply.error().message.find("NOSCRIPT") == std::string::npos) return reply;
    words[0] = "EVAL";
    words[1] = script.source;
    return run_synced(words, script.name, stop);
  }

 private:
  /// It took effect on the primary, but no replica is known to have it.
  static bool is_unsafe(const StoreError& error) { return error.kind == StoreError::Kind::refused; }

  StoreResult<Reply> run_synced(Command command, std::string_view name,
                                const std::stop_token& stop) {
    redis().queue(command, name);
    replicas_.queue(redis());
    auto reply = redis().receive(stop);
    auto acknowledged = replicas_.receive(redis(), stop);
    if (!reply) return reply;
    if (!acknowledged) {
      // The script took effect.
      return tl::unexpected(
          StoreError{StoreError::Kind::unanswered, std::move(acknowledged.error().message)});
    }
    if (*acknowledged >= replicas_.wait().needed) return reply;
    return tl::unexpected(replicas_.wait().too_few(endpoint(), *acknowledged));
  }

  Replicas replicas_;
};

const Registration redis_reentrant_wait(Descriptor{
    .name = "redis-reentrant-wait",
    .backend = "redis",
    .summary = "Redisson's lock on a server with replicas: as redis-reentrant-notify, and WAIT "
               "after each script; refused if no replica acknowledges",
    .acquire_commands = {"EVALSHA reentrant_acquire key owner ttl", "WAIT replicas timeout",
                         "SUBSCRIBE channel", "UNSUBSCRIBE channel"},
    .release_commands = {"EVALSHA reentrant_release key owner ttl channel",
                         "WAIT replicas timeout"},
    .renew_commands = {"EVALSHA reentrant_renew key owner ttl", "WAIT replicas timeout"},
    .source = "Redisson's RLock with checkLockSyncedSlaves",
    .libraries = {{"Java", "Redisson RLock with replicas",
                   "lockWatchdogTimeout = {ttl}, checkLockSyncedSlaves, slavesSyncTimeout"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .reentrant = true,
               .renews = RenewalTiming{},
               .renewable = true,
               .needs_replicas = true,
               .waiting = WaitPolicy::notify(),
               .waiting_choices = {}},
    .hazards = join_hazards(join_hazards({}, {kRenewed, kOneRedis, kKeyTtl},
                                         {"failover", "failover-sentinel", "reentry"}),
                            {kFailoverWithReplicas}),
    .make = construct<ReentrantWait>,
});

}  // namespace
}  // namespace lockbench::redis
